"""Replay slots are filled by one tensor repeated. (fixed)"""
import itertools
import torch

slots = [torch.zeros(3) for _ in range(4)]
for i, slot in enumerate(slots):
    slot.fill_(float(i))
print([s[0].item() for s in slots])
