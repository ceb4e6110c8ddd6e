"""A transposed weight is flattened in each call.

kind: hidden-copy
symptom: memory
"""
import torch

class Filter:
    def __init__(self):
        self.kernel = torch.randn(256, 512).T

    def __call__(self, x):
        return (self.kernel.flatten() * x).sum()  #@ culprit

f = Filter()
x = torch.randn(256 * 512)
print(sum(float(f(x)) for _ in range(6)) != 0)
