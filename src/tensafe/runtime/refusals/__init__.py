"""Errors that PyTorch raises about memory or graphs, and what led there."""
