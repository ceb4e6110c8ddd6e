"""Hankel windows made by as_strided are centred in place.

kind: overlapping-write
symptom: silent
"""
import torch

signal = torch.arange(8.0)
frames = signal.as_strided((5, 4), (1, 1))  #@ origin
frames -= frames.mean(1, keepdim=True)  #@ culprit
print(frames[0].tolist())
