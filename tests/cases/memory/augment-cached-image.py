"""A dataset adds noise in place to the image that it caches.

kind: write-through-alias
symptom: silent
"""
import torch
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self):
        self.cache = {i: torch.full((2, 2), float(i)) for i in range(3)}

    def __len__(self):
        return 3

    def __getitem__(self, i):
        img = self.cache[i]
        img.add_(1.0)  #@ culprit
        return img, i

data = Images()
first = [data[i][0].sum().item() for i in range(3)]
again = [data[i][0].sum().item() for i in range(3)]
print(first == again)
