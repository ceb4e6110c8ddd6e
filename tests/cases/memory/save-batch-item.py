"""One sample of a batch is saved.

kind: serialization-bloat
symptom: memory
"""
import io
import torch

batch = torch.randn(256, 3, 32, 32)
for i in range(2):
    sample = batch[i]  #@ origin
    torch.save({"x": sample, "label": i}, io.BytesIO())  #@ culprit
print("ok")
