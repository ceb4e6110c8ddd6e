"""Notebooks: read as one program, written back in place."""
