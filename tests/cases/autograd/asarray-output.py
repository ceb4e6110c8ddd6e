"""np.asarray of a prediction in an evaluation without no_grad.

kind: numpy-requires-grad
symptom: raises
"""
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(2, 1)
def evaluate(x):
    pred = net(x)  #@ origin
    return np.asarray(pred)  #@ culprit
print(evaluate(torch.randn(4, 2)).shape)
