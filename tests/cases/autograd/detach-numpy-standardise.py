"""A helper standardises what it was given for a plot, through detach().numpy().

kind: silent-gradient-corruption
symptom: silent
"""
import numpy as np
import torch
from torch import nn

def plot(activation):
    array = activation.detach().numpy()
    array -= array.mean()  #@ culprit
    return float(array.std())

torch.manual_seed(0)
net = nn.Linear(4, 4)
h = torch.sigmoid(net(torch.randn(3, 4)))  #@ origin
score = plot(h)
h.pow(2).sum().backward()  #@ site
print(net.bias.grad)
