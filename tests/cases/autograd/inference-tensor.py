"""Features cached under inference_mode are updated in place by training code.

kind: view-inplace-forbidden
symptom: raises
"""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 3)
with torch.inference_mode():
    cache = net(torch.randn(4, 3))  #@ origin
cache.mul_(0.5)  #@ culprit
print(cache.shape)
