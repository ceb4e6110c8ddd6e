"""Extents, overlap, unions and packings, judged by sets of bytes."""
