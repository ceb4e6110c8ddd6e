"""Whole training programs on others' libraries, which must run under `tensafe run` as under plain Python."""
