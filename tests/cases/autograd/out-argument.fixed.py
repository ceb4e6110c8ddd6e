"""A scratch buffer is reused with out= though an earlier product saved it. (fixed)"""
import torch

torch.manual_seed(0)
w = torch.randn(4, 4, requires_grad=True)
x = torch.randn(4, 4)
scratch = x.clone()
hidden = w @ scratch
scratch = torch.mul(x, 2.0)
loss = hidden.pow(2).sum() + scratch.sum()
loss.backward()
print("ok")
