"""NumPy arrays and tensors over one memory."""
