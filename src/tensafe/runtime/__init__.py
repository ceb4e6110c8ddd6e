"""A running program translated into facts: saved-tensor hooks for the truth, wrapped calls for the names."""
