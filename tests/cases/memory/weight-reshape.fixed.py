"""A transposed weight is flattened in each call. (fixed)"""
import torch

class Filter:
    def __init__(self):
        self.kernel = torch.randn(256, 512).T.contiguous()

    def __call__(self, x):
        return (self.kernel.flatten() * x).sum()

f = Filter()
x = torch.randn(256 * 512)
print(sum(float(f(x)) for _ in range(6)) != 0)
