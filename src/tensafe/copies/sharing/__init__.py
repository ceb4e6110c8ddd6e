"""One shared-memory arena for a whole tree of tensors and arrays, attached by one small handle."""
