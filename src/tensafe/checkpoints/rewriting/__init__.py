"""A checkpoint written again without its dead bytes."""
