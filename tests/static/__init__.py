"""The static engine on snippets of source."""
