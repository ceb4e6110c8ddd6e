"""The table of operations against torch itself."""
