"""Where the program stands and what its source says there: lines, names, statements, holders."""
