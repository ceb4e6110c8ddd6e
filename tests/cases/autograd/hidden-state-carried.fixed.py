"""The hidden state of an LSTM is carried from batch to batch without detach. (fixed)"""
import torch
from torch import nn

torch.manual_seed(0)
rnn, head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 1)
opt = torch.optim.SGD([*rnn.parameters(), *head.parameters()], 0.1)
hidden = None
for _ in range(3):
    out, hidden = rnn(torch.randn(2, 5, 3), hidden)
    hidden = tuple(h.detach() for h in hidden)
    loss = head(out).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print("ok")
