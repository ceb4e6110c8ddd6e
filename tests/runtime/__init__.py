"""The runtime engine."""
