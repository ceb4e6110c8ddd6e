"""A conversion is written and dropped.

kind: lost-write
symptom: silent
"""
import torch

counts = torch.zeros(3, dtype=torch.int64)
counts.float().add_(1.5)  #@ culprit
print(counts.tolist())
