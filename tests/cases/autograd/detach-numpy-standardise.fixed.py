"""A helper standardises what it was given for a plot, through detach().numpy(). (fixed)"""
import numpy as np
import torch
from torch import nn

def plot(activation):
    array = activation.detach().numpy()
    array = array - array.mean()
    return float(array.std())

torch.manual_seed(0)
net = nn.Linear(4, 4)
h = torch.sigmoid(net(torch.randn(3, 4)))
score = plot(h)
h.pow(2).sum().backward()
print(net.bias.grad)
