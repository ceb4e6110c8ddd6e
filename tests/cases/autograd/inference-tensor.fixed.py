"""Features cached under inference_mode are updated in place by training code. (fixed)"""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 3)
with torch.no_grad():
    cache = net(torch.randn(4, 3))
cache.mul_(0.5)
print(cache.shape)
