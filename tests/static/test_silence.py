"""Correct code on which an earlier tensafe spoke, each once seen in a public repository."""

from __future__ import annotations

import pytest

from static.checking import found

CORRECT = {
    "the last layer has no activation": """
class MLP(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(n))
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = F.relu(layer(x)) if i < self.n - 1 else layer(x)
        return x
class Head(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mlp = MLP(n)
    def forward(self, x, reference):
        boxes = self.mlp(x)
        boxes[..., :2] += reference
        return boxes
""",
    "the value is new in the branch that saves the old one": """
class Layer(nn.Module):
    def __init__(self, gated):
        super().__init__()
        self.gated, self.fc, self.scale = gated, nn.Linear(4, 4), nn.Parameter(torch.ones(1))
    def forward(self, x):
        x = x + 1
        if self.gated:
            x = x + self.fc(x)
        x *= self.scale
        return x
""",
    "a number that is given is not None": """
def count(index, size=None):
    if size is not None:
        return size
    return index.view(-1).max() + 1
rows = [[0, 1], [1, 2]]
index = torch.tensor(rows).t()
n = count(index, len(rows))
""",
    "inference needs no gradient": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        y = self.fc(x)
        if not self.training:
            y = y.sigmoid()
            y[..., :2] *= 4
        return y
    def _inference_forward(self, x):
        y = self.fc(x).sigmoid()
        y *= 2
        return y
""",
    "max over a dimension keeps indices alone": """
class Attention(nn.Module):
    def forward(self, x):
        w = torch.clamp(x, min=-5, max=5)
        top = w.transpose(1, 2) - torch.max(w.transpose(1, 2), dim=-1, keepdim=True)[0]
        w.masked_fill_(top > 0, 0.0)
        return w.sum(), top
""",
    "each element has its own state": """
def load(parts, keys):
    states = {}
    for key in keys:
        states[key] = parts[key].state_dict()
    read_into(states)
    for key in keys:
        parts[key].load_state_dict(states[key])
""",
    "an optimizer's state edited through itself": """
def load(opt, full):
    groups, state = opt.state_dict()["param_groups"], opt.state_dict()["state"]
    for group, other in zip(groups, full["param_groups"]):
        for key, value in other.items():
            group[key] = value
        for pid in group["params"]:
            state[pid]["step"] = full["state"][pid]
    opt.load_state_dict({"param_groups": groups, "state": state})
""",
    "an optimizer that has not stepped has no state": """
net = nn.Linear(2, 2)
first = torch.optim.Adam(net.parameters())
other = torch.optim.Adam(net.parameters())
other.load_state_dict(first.state_dict())
net(torch.ones(1, 2)).sum().backward()
first.step()
class Wrapper:
    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.initial = self.optimizer.state_dict()
    def reset(self):
        self.optimizer.load_state_dict(self.initial)
""",
    "the in-place layer at the front of a list is replaced": """
class Block(nn.Module):
    def __init__(self, start=True):
        super().__init__()
        layers = [nn.ReLU(inplace=True), nn.Linear(4, 4)]
        if not start:
            layers = layers[1:]
        else:
            layers[0] = nn.ReLU(inplace=False)
        self.body = nn.Sequential(*layers)
    def forward(self, x):
        return x + self.body(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.one, self.two = nn.ReLU(inplace=True), Block(start=False), Block()
    def forward(self, x):
        return self.two(self.one(self.act(x)))
""",
    "a metric is no part of the loss": """
def accuracy(model, loader):
    hits = 0
    with torch.no_grad():
        for x, y in loader:
            p = torch.sigmoid(model(x))
            p[p > 0.5] = 1
            hits += (p == y).sum().item()
    return hits
def train(model, x, y, opt):
    out = model(x)
    p = torch.sigmoid(out)
    loss = F.binary_cross_entropy_with_logits(out, y)
    p[p > 0.5] = 1
    opt.zero_grad()
    loss.backward()
    opt.step()
    return (p == y).float().mean()
""",
    "distances that only choose an index": """
class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("embed", torch.randn(8, 4))
    def forward(self, x):
        index = (x @ self.embed.t()).argmax(-1)
        picked = F.embedding(index, self.embed)
        self.embed.mul_(0.99)
        return x + (picked - x).detach()
""",
    "dictionaries, counters and strings": """
class Meter(nn.Module):
    def forward(self, x, names):
        count, text, seen = 0, "", {}
        for name in names:
            count += 1.5
            text += name
            seen[name] = x.exp()
            seen[name] = seen[name] * 2
        return seen
""",
    "a clone is written": """
class Net(nn.Module):
    def forward(self, x):
        y = torch.exp(x)
        z = y.clone()
        z[z > 10] = 10
        w = y.detach().clone()
        w.zero_()
        return z + y
""",
    "one of two encoders": """
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
    def forward(self, x):
        return self.norm(x)
class Masked(nn.Module):
    def forward(self, x):
        x[x > 5] = 0
        return x
class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        if config.stable:
            self.encoder = Plain()
        else:
            self.encoder = Masked()
    def forward(self, x):
        return self.encoder(self.fc(x))
""",
    "a forward that says that nobody trains through it": """
class Partial(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
    def forward_slicing(self, x: torch.Tensor) -> torch.Tensor:
        # only for inference
        x = x.clone()
        x[:, :2] = self.conv(x[:, :2])
        return x
""",
}


@pytest.mark.parametrize("name", CORRECT)
def test_silence(name: str) -> None:
    assert found(CORRECT[name]) == []
