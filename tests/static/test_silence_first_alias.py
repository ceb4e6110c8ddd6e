"""Correct code of shared memory on which tensafe spoke at first sight, and the fault beside it."""

from __future__ import annotations

import pytest

from static.checking import expected, found

PAIRS = {
    "a model that nobody trains is put back as it was": (
        """
class Explainer:
    def explain(self, inputs):
        self.original = self.model.state_dict()
        for layer in self.layers:
            layer.weight.data = layer.weight.data.clamp(min=0)
        relevance = self.relevance(inputs)
        self.restore()
        return relevance
    def restore(self):
        self.model.load_state_dict(self.original)
""",
        """
class Trainer:
    def keep(self):
        self.original = self.model.state_dict()  # finds TS102
    def fit(self, batches):
        for batch in batches:
            self.optimizer.step()
    def restore(self):
        self.model.load_state_dict(self.original)
""",
    ),
    "a copy that is trained beside its original": (
        """
def pair():
    ours = nn.Linear(2, 2)
    return ours, copy.deepcopy(ours)
def compare(x):
    ours, theirs = pair()
    first = torch.optim.SGD(ours.parameters(), 0.1)
    second = torch.optim.SGD(theirs.parameters(), 0.1)
    for _ in range(2):
        a, b = ours(x).sum(), theirs(x).sum()
        a.backward()
        b.backward()
        first.step()
        second.step()
""",
        """
def pair():
    ours = nn.Linear(2, 2)
    return ours, copy.deepcopy(ours)
def compare(x):
    ours, theirs = pair()
    first = torch.optim.SGD(ours.parameters(), 0.1)  # finds TS107
    for _ in range(2):
        b = theirs(x).sum()
        b.backward()
        first.step()
""",
    ),
    "a state that is loaded into the model it lives in": (
        """
def search(module: nn.Module, layers, ratios):
    original = {k: v.cpu() for k, v in module.state_dict().items()}
    for ratio in ratios:
        for layer in layers:
            layer.weight.data = layer.weight.data * ratio
        module.load_state_dict(original)
""",
        """
def search(module: nn.Module, batches):
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    original = {k: v for k, v in module.state_dict().items()}  # finds TS102
    for batch in batches:
        module(batch).sum().backward()
        optimizer.step()
    module.load_state_dict(original)
""",
    ),
    "a stand-in for a shape": (
        """
def stand_in(module: nn.Module, shape):
    module.weight = nn.Parameter(torch.empty(()).expand(shape))
""",
        """
def stand_in(module: nn.Module, shape):
    module.weight = nn.Parameter(torch.ones(()).expand(shape))  # finds TS104
""",
    ),
    "a tensor that is made of a tensor by its type": (
        """
pad = torch.Tensor(torch.zeros(2, 3)).type(torch.float64)
""",
        """
pad = torch.tensor(torch.zeros(2, 3)).type(torch.float64)  # finds TS301
""",
    ),
    "a written view that is put back under the name of the whole": (
        """
def weights(target: torch.Tensor):
    found = 1.0 / target.sum(2)
    flat = found.flatten()
    flat[torch.isinf(flat)] = 0
    most = found.max()
    found = flat.reshape(target.shape[:2])
    return found / most
""",
        """
def weights(target: torch.Tensor):
    found = 1.0 / target.sum(2)
    flat = found.flatten()
    flat[torch.isinf(flat)] = 0  # finds TS101
    most = found.max()
    return flat.reshape(target.shape[:2]) / most, found
""",
    ),
    "a cast that had to copy where the old name is read": (
        """
def convert(boxes, inplace: bool):
    original = boxes
    whole = not boxes.is_floating_point()
    if whole:
        boxes = boxes.float()
    elif not inplace:
        boxes = boxes.clone()
    boxes[..., :2].sub_(boxes[..., 2:] / 2)
    if whole:
        original[:] = boxes
        return original
    return boxes
""",
        """
def convert(boxes: torch.Tensor):
    original = boxes  # finds TS101
    for _ in range(2):
        boxes.sub_(boxes / 2)
    return boxes, original
""",
    ),
    "places that are ruled out before the best are taken": (
        """
def route(x: torch.Tensor, mask: torch.Tensor):
    scores = x.sigmoid()
    original = scores
    scores.masked_fill_(mask, float("-inf"))
    best = scores.topk(2)[1]
    return original.gather(1, best), best
""",
        """
def route(x: torch.Tensor, mask: torch.Tensor):
    scores = x.sigmoid()
    original = scores  # finds TS101
    scores.masked_fill_(mask, float("-inf"))
    best = scores.topk(2)[1]
    return original.sum(1), best
""",
    ),
    "a write and a read in two arms of one question": (
        """
def losses(policy: torch.Tensor, value: torch.Tensor, config):
    total = policy.mean()
    policy_loss = total
    if not config["separate"]:
        total += value
    if config["separate"]:
        return policy_loss, value
    return total
""",
        """
def losses(policy: torch.Tensor, value: torch.Tensor, config):
    total = policy.mean()
    policy_loss = total  # finds TS101
    if not config["separate"]:
        total += value
    return policy_loss, total
""",
    ),
    "a function that clones what it is about to write": (
        """
class Mix:
    def mix(self, x, n: int):
        original = x.clone()
        for i in range(n):
            x[i] = x[i] * 0.5 + original[n - i - 1] * 0.5
        return torch.full((n,), 0.5)
    def __call__(self, sample):
        x = torch.stack(sample).clamp_(0)
        weights = self.mix(x, len(x))
        return {"input": x, "weights": weights}
""",
        """
class Mix:
    def mix(self, x, n: int):
        x *= 0.5  # finds TS101
        return x.sum()
    def __call__(self, sample):
        x = torch.stack(sample).clamp_(0)
        total = self.mix(x, len(x))
        return {"input": x, "total": total}
""",
    ),
    "layers out of a list, of which two stand for all": (
        """
class Net(nn.Module):
    def __init__(self, sizes, functions):
        super().__init__()
        layers = []
        for i in range(len(sizes) - 1):
            layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        made = []
        for layer, function in zip(layers[:-1], functions):
            made.append(layer)
            made.append(function())
        self.net = nn.Sequential(*made)
net = Net(sizes, functions)
""",
        """
class Net(nn.Module):
    def __init__(self, size, functions):
        super().__init__()
        layer = nn.Linear(size, size)
        made = []
        for function in functions:
            made.append(layer)  # finds TS103
            made.append(function())
        self.net = nn.Sequential(*made)
net = Net(2, functions)
""",
    ),
    "an activation that two blocks are given": (
        """
class Block(nn.Module):
    def __init__(self, act):
        super().__init__()
        layers = [nn.Linear(2, 2)]
        layers.append(act)
        self.body = nn.Sequential(*layers)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        act = nn.PReLU()
        self.one, self.other = Block(act), Block(act)
net = Net()
""",
        """
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        layers, layer = [], nn.Linear(2, 2)
        for _ in range(n):
            layers.append(layer)  # finds TS103
        self.body = nn.Sequential(*layers)
net = Net(3)
""",
    ),
    "a name that each round gives another before it is written": (
        """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))
    def forward(self, x):
        out = x
        out += self.bias
        return torch.sigmoid(out)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.heads = nn.Linear(2, 2), nn.ModuleList([Head(), Head()])
    def forward(self, x, deep):
        found = []
        for i in range(2):
            if deep:
                logit = self.fc(x)
            else:
                logit = self.fc(x + 1)
            found.append(self.heads[i](logit))
        return torch.cat(found)
out = Net()(torch.rand(2, 2), deep)
""",
        """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))
    def forward(self, x):
        out = x
        out += self.bias  # finds TS101
        return torch.sigmoid(out)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.heads = nn.Linear(2, 2), nn.ModuleList([Head(), Head()])
    def forward(self, x):
        found = []
        logit = self.fc(x)
        for i in range(2):
            found.append(self.heads[i](logit))
        return torch.cat(found)
out = Net()(torch.rand(2, 2))
""",
    ),
    "another tensor on one of two ways": (
        """
def route(x: torch.Tensor, bias, n: int):
    scores = x.sigmoid()
    kept = scores
    if bias is not None:
        scores = scores + bias
    scores.mul_(n)
    return kept.sum(1), scores
""",
        """
def route(x: torch.Tensor, bias, n: int):
    scores = x.sigmoid()
    kept = scores  # finds TS101
    scores.mul_(n)
    return kept.sum(1), scores
""",
    ),
    "a write that waits until the name is another tensor": (
        """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    def forward(self, x, shift):
        for i, block in enumerate(self.blocks):
            if i > 0:
                x += shift
            x = block(x)
        return x
layer = Layer()
x = torch.rand(2, 4)
y = layer(x, shift)
z = layer(x, shift)
""",
        """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Linear(4, 4)
    def forward(self, x, shift):
        if shift is not None:
            x += shift  # finds TS101
        for i in range(2):
            x = self.block(x)
        return x
layer = Layer()
x = torch.rand(2, 4)
y = layer(x, shift)
z = layer(x, shift)
""",
    ),
    "a parameter that is read as a key alone": (
        """
def moved(p, index):
    p[index] = p[0]
    return nn.Parameter(p.detach().clone())
def update(optimizer, p: torch.Tensor, index):
    made = moved(p, index.clone())
    return made, optimizer.state[p]
""",
        """
def moved(p, index):
    p[index] = p[0]  # finds TS101
    return nn.Parameter(p.detach().clone())
def update(optimizer, p: torch.Tensor, index):
    made = moved(p, index.clone())
    return made, p.sum()
""",
    ),
    "an attribute that is there to be written over": (
        """
class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scratch", torch.zeros(3))
    def forward(self, x):
        total = self.scratch.to(x.dtype)
        total += x
        return total
""",
        """
class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.zeros(3))
    def forward(self, x):
        total = self.offset.to(x.dtype)
        total += x  # finds TS101
        return total
""",
    ),
    "an old name that is read for its shape": (
        """
def filled(ids, scores: torch.Tensor, value: float):
    found = scores.flatten()
    found[ids.flatten()] = value
    return found.reshape_as(scores)
""",
        """
def filled(ids, scores: torch.Tensor, value: float):
    found = scores.flatten()
    found[ids.flatten()] = value  # finds TS101
    return found.reshape(scores.shape) - scores
""",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_correct_code_is_silent(name: str) -> None:
    assert found(PAIRS[name][0]) == []


@pytest.mark.parametrize("name", PAIRS)
def test_the_twin_is_found(name: str) -> None:
    assert found(PAIRS[name][1]) == expected(PAIRS[name][1])
