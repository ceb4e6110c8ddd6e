"""A conversion is written and dropped. (fixed)"""
import torch

counts = torch.zeros(3, dtype=torch.int64)
counts = counts.float().add_(1.5)
print(counts.tolist())
