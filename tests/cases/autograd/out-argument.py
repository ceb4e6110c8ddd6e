"""A scratch buffer is reused with out= though an earlier product saved it.

kind: saved-tensor-modified
symptom: raises
"""
import torch

torch.manual_seed(0)
w = torch.randn(4, 4, requires_grad=True)
x = torch.randn(4, 4)
scratch = x.clone()
hidden = w @ scratch  #@ origin
torch.mul(x, 2.0, out=scratch)  #@ culprit
loss = hidden.pow(2).sum() + scratch.sum()
loss.backward()  #@ site
print("ok")
