"""Watchpoints: who writes into this memory, at the writing line."""
