"""Graphs: what they save, where they are cut, kept too long, or carry a gradient that is thrown away."""
