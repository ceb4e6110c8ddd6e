"""Look-alikes of what PyTorch refuses: in-place writes, arrays, copies and backwards that are right."""

from __future__ import annotations

import pytest

from static.checking import found

ALLOWED = {
    "the caller may have switched recording off": """
def clip(model):
    for p in model.parameters():
        p.clamp_(-1, 1)
class Shadow:
    def __init__(self):
        self.net = nn.Linear(2, 2)
    def update(self, model):
        for mine, p in zip(self.net.parameters(), model.parameters()):
            mine.lerp_(p, 0.1)
""",
    "a frozen copy": """
net = nn.Linear(2, 2)
shadow = copy.deepcopy(net).requires_grad_(False)
for mine, p in zip(shadow.parameters(), net.parameters()):
    mine.mul_(0.9).add_(p.detach(), alpha=0.1)
""",
    "frozen one by one": """
shadow = nn.Linear(2, 2)
for p in shadow.parameters():
    p.requires_grad = False
for p in shadow.parameters():
    p.mul_(0.9)
""",
    "a flag decides": """
class Scale(nn.Module):
    def __init__(self, learned):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3), requires_grad=learned)
        self.scale.mul_(2)
""",
    "the refusal is expected": """
import pytest
w = torch.ones(2, requires_grad=True)
with pytest.raises(RuntimeError):
    w.add_(1)
try:
    array = (w * 2).numpy()
except RuntimeError:
    array = None
""",
    "a context of which nothing is known": """
from library import maybe_no_grad
w = torch.ones(2, requires_grad=True)
with maybe_no_grad():
    w.add_(1)
with torch.no_grad() if w.sum() > 0 else nullcontext():
    w.add_(1)
""",
    "halves of numbers, and halves under no_grad": """
a, b = torch.ones(2, 4).chunk(2)
a.mul_(2)
with torch.no_grad():
    c, d = nn.Linear(2, 4)(torch.ones(1, 2)).chunk(2, dim=1)
    c.mul_(2)
e, f = nn.Linear(2, 4)(torch.ones(1, 2)).detach().chunk(2, dim=1)
e.mul_(2)
""",
    "a copy of a half": """
a, b = nn.Linear(2, 4)(torch.ones(1, 2)).chunk(2, dim=1)
a = a.clone()
a.mul_(2)
b = b + 1
b += 1
""",
    "two outputs are no unbound tensor": """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.rnn = nn.MultiheadAttention(4, 1), nn.LSTM(4, 4)
    def forward(self, x, mask):
        out, _ = self.attention(x, x, x)
        out[mask] = 0.0
        states, (h, c) = self.rnn(out)
        states[0] = 0.0
        return states + h
""",
    "a custom Function that computes, or declares what it writes": """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
class Fill(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.zero_()
    @staticmethod
    def backward(ctx, g):
        return g * 0
out = Twice.apply(nn.Linear(2, 2)(torch.ones(1, 2)))
out.add_(1)
other = Fill.apply(nn.Linear(2, 2)(torch.ones(1, 2)))
other.add_(1)
""",
    "a view of another mode is detached, a half is moved": """
z = nn.Linear(3, 4)(torch.ones(2, 3))
with torch.no_grad():
    row = z[0]
row.detach().add_(1)
a, b = z.chunk(2, dim=1)
a.detach().mul_(z.sum().detach())
b.to("cuda").mul_(2)
""",
    "a value of one of two ways": """
net, trains = nn.Linear(2, 1), read_flag()
y = (net(torch.ones(1, 2)) if trains else torch.ones(1, 2)) * 2
y.numpy()
copy.deepcopy(y)
""",
    "a state that a new sequence forgets": """
cell, state = nn.GRU(3, 4), None
for batch in batches():
    if batch.is_first:
        state = None
    out, state = cell(batch.x, state)
    out.mean().backward()
""",
    "measured without recording": """
net = nn.Linear(2, 1)
with torch.no_grad():
    out = net(torch.ones(1, 2))
out.numpy(), net.weight.detach().numpy(), net.weight.numpy(force=True), net.weight.data.numpy()
""",
    "only the caller knows whether the output has a graph": """
class Vocoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
    def forward(self, x):
        return self.fc(x)
    def synthesise(self, x):
        return self(x).cpu().numpy()
""",
    "numpy asks the tensor's own method": """
loss = nn.Linear(2, 1)(torch.ones(1, 2)).sum()
print(np.mean(loss), np.sum(loss))
""",
    "numbers are collected": """
net, losses, names = nn.Linear(2, 1), [], []
for _ in range(3):
    loss = net(torch.ones(1, 2)).mean()
    loss.backward()
    losses.append(loss.item())
print(np.mean(losses))
""",
    "each key of a defaultdict has its own list": """
from collections import defaultdict
log, net = defaultdict(list), nn.Linear(2, 1)
log["live"].append(net(torch.ones(1, 2)))
log["seconds"].append(0.5)
print(np.mean(log["seconds"]))
""",
    "leaves, detached values and state dicts have copies": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.ones(2))
    def forward(self, x):
        self.last = self.fc(x).detach()
        return self.fc(x) * self.scale
net = Net()
net(torch.ones(1, 2))
copy.deepcopy(net), copy.deepcopy(net.state_dict()), copy.deepcopy(net.scale)
""",
    "the class says how it is copied": """
import threading
class Served(nn.Module):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()
    def __getstate__(self):
        return {}
copy.deepcopy(Served())
""",
    "the lock is gone before the copy": """
import threading
class Served(nn.Module):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()
served = Served()
served.lock = None
copy.deepcopy(served)
""",
    "the state is detached, at least every few steps": """
cell, state = nn.GRUCell(3, 4), torch.zeros(1, 4)
for step in range(9):
    state = cell(torch.ones(1, 3), state)
    if step % 3 == 2:
        state.pow(2).mean().backward()
        state = state.detach()
""",
    "losses are summed up between two backwards": """
net, total = nn.Linear(3, 1), 0
for step in range(9):
    total = total + net(torch.ones(1, 3)).pow(2).mean()
    if step % 3 == 2:
        total.backward()
        total = 0
""",
    "the graph is kept on purpose": """
net, head = nn.Linear(3, 3), nn.Linear(3, 1)
code = net(torch.ones(1, 3)).tanh()
for step in range(3):
    head(code).mean().backward(retain_graph=step < 2)
""",
    "what is shared needs nothing for its backward": """
w, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
both = w + b
both.sum().backward()
both.mean().backward()
""",
    "the state is detached in place": """
cell, state = nn.GRUCell(3, 4), torch.zeros(1, 4)
for step in range(9):
    state = cell(torch.ones(1, 3), state)
    state.pow(2).mean().backward()
    state.detach_()
""",
    "a list is emptied after its backward": """
net, losses = nn.Linear(3, 1), []
for step in range(9):
    losses.append(net(torch.ones(1, 3)).pow(2).mean())
    if len(losses) == 3:
        torch.stack(losses).sum().backward()
        losses = []
""",
    "requires grad on one of two ways": """
def pooled(rows, old):
    out = torch.zeros(3)
    if old == "parrots":
        out.requires_grad = True
    out[rows > 1] = 2.0
    out += 1.0
    return out
""",
    "layers of which one is known": """
class Stem(nn.Module):
    def __init__(self, n, layers):
        super().__init__()
        rows = [nn.ReLU()]
        self.body = nn.Sequential(*rows, *layers)

    def forward(self, x):
        y = self.body(x)
        y += x
        return y
""",
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_is_not_reported(name: str) -> None:
    assert found(ALLOWED[name]) == []
