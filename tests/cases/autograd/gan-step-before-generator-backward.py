"""The critic steps between the generator's forward and its backward.

kind: saved-tensor-modified
symptom: raises
"""
import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
og, od = torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1)
fake = G(torch.randn(4, 2))
g_loss = -D(fake).mean()  #@ origin
d_loss = D(fake.detach()).mean() - D(torch.randn(4, 3)).mean()
od.zero_grad()
d_loss.backward()
od.step()  #@ culprit
og.zero_grad()
g_loss.backward()  #@ site
og.step()
print("ok")
