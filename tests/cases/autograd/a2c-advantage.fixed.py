"""The advantage of an actor-critic keeps the critic's graph. (fixed)"""
import torch
from torch import nn
from torch.distributions import Categorical

class AC(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi, self.v = nn.Linear(4, 2), nn.Linear(4, 1)
    def forward(self, x):
        return Categorical(logits=self.pi(x)), self.v(x).squeeze(-1)

torch.manual_seed(0)
net = AC()
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(4):
    obs, ret = torch.randn(8, 4), torch.randn(8)
    dist, value = net(obs)
    act = dist.sample()
    adv = ret - value
    policy_loss = -(dist.log_prob(act) * adv.detach()).mean()
    loss = policy_loss + 0.5 * adv.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print("ok")
