"""Snapshots: a training state taken, compared, put back in place, and kept in a file."""
