"""A weight is tied by .data and replaced when the model is cast.

kind: tied-weights-broken
symptom: silent
"""
import torch
from torch import nn

torch.manual_seed(0)
class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        self.dec.weight.data = self.enc.weight.data  #@ origin

    def forward(self, x):
        return self.dec(self.enc(x))

net = AE()
net.double()  #@ culprit
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(2):
    opt.zero_grad()
    net(torch.randn(4, 3).double()).pow(2).mean().backward()
    opt.step()
print(torch.equal(net.enc.weight, net.dec.weight))
