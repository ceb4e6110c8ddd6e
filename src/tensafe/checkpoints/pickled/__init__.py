"""Pickles as symbols: what they would import and build, told without doing it."""
