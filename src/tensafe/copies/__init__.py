"""Copies of trees of tensors: planned from extents, then carried out in few large operations."""
