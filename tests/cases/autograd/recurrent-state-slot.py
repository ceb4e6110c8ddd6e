"""The states of a recurrent net are written into one preallocated tensor that each step also reads.

kind: saved-tensor-modified
symptom: raises
"""
import torch
from torch import nn

torch.manual_seed(0)
cell = nn.Linear(6, 3)
xs = torch.randn(4, 2, 3)
states = torch.zeros(5, 2, 3)
for t in range(4):
    inp = torch.cat([xs[t], states[t]], dim=1)
    gate = torch.sigmoid(cell(inp))
    states[t + 1] = gate * states[t]  #@ culprit
loss = states[-1].sum()
loss.backward()  #@ site
print("ok")
