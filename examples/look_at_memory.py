"""What a slice keeps alive, whether two tensors share memory, and where a model's memory goes."""

import torch

import tensafe

table = torch.zeros(250_000)
sample = table[:100]
print(tensafe.explain(sample))

print(tensafe.overlap(table[0:3], table[1:4]))
print(tensafe.overlap(table[::2], table[1::2]))

model = torch.nn.Sequential(torch.nn.Embedding(1000, 64), torch.nn.Linear(64, 1000, bias=False))
model[1].weight = model[0].weight  # tied
optimizer = torch.optim.AdamW(model.parameters())
model(torch.arange(8)).sum().backward()
optimizer.step()
print(tensafe.memory_map(model, optimizer, sample))
