"""Tests of the room that reads and rewrites checkpoints."""
