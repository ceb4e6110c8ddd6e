"""Who else has the memory that is written: other names, callers, arrays, containers, processes, savers."""
