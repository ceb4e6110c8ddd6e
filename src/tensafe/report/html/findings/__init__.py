"""Findings as HTML: one card each, with its source, memory to scale, order of time and fix."""
