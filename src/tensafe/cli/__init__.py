"""Arguments in, exit status out: one module per command, each loaded only when it is called."""
