"""The pages and fragments, read back with a parser and in a browser."""
