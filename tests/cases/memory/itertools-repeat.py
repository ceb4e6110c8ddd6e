"""Replay slots are filled by one tensor repeated.

kind: repeated-reference
symptom: silent
"""
import itertools
import torch

slots = list(itertools.repeat(torch.zeros(3), 4))  #@ culprit
for i, slot in enumerate(slots):
    slot.fill_(float(i))  #@ site
print([s[0].item() for s in slots])
