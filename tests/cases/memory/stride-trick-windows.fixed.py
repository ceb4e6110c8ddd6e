"""Hankel windows made by as_strided are centred in place. (fixed)"""
import torch

signal = torch.arange(8.0)
frames = signal.as_strided((5, 4), (1, 1))
frames = frames - frames.mean(1, keepdim=True)
print(frames[0].tolist())
