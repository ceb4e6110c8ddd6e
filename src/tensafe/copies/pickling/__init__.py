"""Pickle protocol 5 for trees of tensors and arrays: bytes beside the stream, memory shared as it was."""
