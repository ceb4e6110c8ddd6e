"""Writes that hit what they should not, or that nobody ever sees."""
