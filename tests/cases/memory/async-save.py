"""A checkpoint is saved by a pool while training goes on.

kind: write-during-save
symptom: silent
"""
import io, time
from concurrent.futures import ThreadPoolExecutor
import torch
from torch import nn

def save(state, out):
    time.sleep(0.2)
    torch.save(state, out)

torch.manual_seed(0)
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
pool = ThreadPoolExecutor(1)
jobs = []
for _ in range(2):
    opt.zero_grad()
    net(torch.randn(4, 3)).sum().backward()
    opt.step()
    jobs.append(pool.submit(save, net.state_dict(), io.BytesIO()))  #@ culprit
for job in jobs:
    job.result()
print("ok")
