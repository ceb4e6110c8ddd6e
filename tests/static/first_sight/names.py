"""Correct code that writes what a caller or another name has, on which tensafe spoke at first sight."""

from __future__ import annotations

PAIRS = {
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
