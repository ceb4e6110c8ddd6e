"""The language server, asked over its standard streams."""
