"""The bootstrapped target of a DQN comes from the live network. (fixed)"""
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(q.parameters(), 1e-3)
GAMMA = 0.99
for _ in range(4):
    s, s2, r, a, done = torch.randn(8, 4), torch.randn(8, 4), torch.randn(8), torch.randint(0, 2, (8, 1)), torch.zeros(8)
    current = q(s).gather(1, a).squeeze(1)
    next_q = q(s2).max(1)[0].detach()
    expected = r + GAMMA * (1 - done) * next_q
    loss = F.smooth_l1_loss(current, expected)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("ok")
