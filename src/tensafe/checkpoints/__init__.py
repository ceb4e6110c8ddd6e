"""Checkpoints read without being executed, and rewritten without dead bytes."""
