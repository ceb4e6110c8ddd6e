"""A record as text, JSON, GitHub annotations or SARIF; reads source files, never an engine."""
