"""The hidden states of a decoder are detached before they are stacked for the loss.

kind: graph-cut
symptom: silent
"""
import torch
from torch import nn

torch.manual_seed(0)
class Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(3, 5), nn.Linear(5, 2)

    def forward(self, xs):
        h, outs = torch.zeros(xs.shape[1], 5), []
        for x in xs:
            h = self.cell(x, h)
            outs.append(h.detach())  #@ culprit
        return self.out(torch.stack(outs))

net = Seq()
opt = torch.optim.Adam(net.parameters())
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(4, 2, 3)).pow(2).mean().backward()
    opt.step()
print("ok")
