"""Weights are clipped with torch.clamp_ as in a Wasserstein GAN.

kind: leaf-inplace
symptom: raises
"""
import torch
from torch import nn

critic = nn.Linear(3, 1)
for p in critic.parameters():
    torch.clamp_(p, -0.01, 0.01)  #@ culprit
print("ok")
