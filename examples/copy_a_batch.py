"""Copies that keep what is shared shared: a batch with a graph, a module in one flat buffer, a slice."""

from types import SimpleNamespace

import torch

import tensafe

weight = torch.ones(4, requires_grad=True)
batch = {"x": torch.rand(2, 4), "pred": SimpleNamespace(logits=weight * 2)}
try:
    tensafe.deepcopy(batch)
except RuntimeError as refusal:  # what copy.deepcopy raises, with the place
    print(refusal)
print(tensafe.deepcopy(batch, graph="cut")["pred"].logits)


class Flat(torch.nn.Module):
    """All weights in one buffer; the parameters are windows into it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("flat", torch.zeros(8))
        self.weight = torch.nn.Parameter(self.flat[:6].view(2, 3))
        self.bias = torch.nn.Parameter(self.flat[6:])


average = tensafe.deepcopy(Flat())
average.flat.fill_(0.5)
print(average.bias)

table = torch.zeros(1000, 100)
views = {"rows": table[:3], "row": table[2]}
print(tensafe.plan(views, compact=True))
small = tensafe.compact(views)
small["rows"].fill_(1.0)
print(small["row"].sum(), small["rows"].untyped_storage().nbytes(), table.sum())
