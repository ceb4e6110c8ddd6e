"""Correct code that looks like a fault, and the fault beside it; an earlier tensafe spoke on each."""

from __future__ import annotations

import pytest

from static.checking import HEAD, expected, found
from tensafe.check import check_text
from tensafe.facts import Call, History, Kind
from tensafe.rules._loader import select
from tensafe.static import examine

TRAINED = """
def make():
    m = nn.Linear(2, 2)
    return m, torch.optim.SGD(m.parameters(), 0.1)
def train(m, o, x):
    m(x).sum().backward()
    o.step()
"""

INDICES = {
    "items of an index tensor are numbers": """
def f(x, y):
    for t in torch.arange(3):
        x[t].add_(1)
    for i, t in enumerate(torch.randperm(3)):
        x[t].add_(i)
    for s, e in zip(torch.arange(3), torch.arange(3) + 1):
        x[s].zero_()
        x[e][0] = 1
    for r, c in zip(*torch.where(x > 0)):
        x[r][c] = 0
    for r in torch.where(x[0] > 0)[0]:
        x[r].fill_(3)
    it = iter(torch.randperm(2))
    x[next(it)][1] = 7
    [x[t].add_(1) for t in x[0].argsort()]
    order = torch.arange(3)
    x[order.sum()].zero_()
    x[order.max() - 1].zero_()
    x[order[1:].min()].zero_()
""",
    "items of an index array are numbers": """
a = np.zeros((4, 4))
for i in np.argsort(a[0]):
    a[i].sort()
    a[i][0] = 3
for r in np.random.permutation(4):
    a[r][:2] = 0
for r, c in zip(*np.nonzero(a)):
    a[r][c] += 1
""",
    "a random number of no dimension": """
def f(x, shape):
    r = torch.randint(3, ())
    x[r].add_(1)
    q = torch.randint(0, 3, size=())
    x[q].add_(1)
    s = torch.randint(0, 3, shape)
    x[s].add_(1)
""",
    "the whole index tensor copies": """
def f(x):
    order = torch.randperm(3)
    x[order].zero_()  # finds TS106
    x[order + 1].zero_()  # finds TS106
    some = torch.randint(0, 3, (2,))
    x[some].add_(1)  # finds TS106
    for rows in np.argsort(x), order[:2]:
        pass
""",
}

STATES = {
    "entries are cloned": """
def f(x):
    m, o = make()
    sd = m.state_dict()
    for k in sd:
        sd[k] = sd[k].clone()
    train(m, o, x)
    m.load_state_dict(sd)
""",
    "entries are replaced before they are loaded": """
def f(x, w):
    m, o = make()
    own = m.state_dict()
    train(m, o, x)
    own.update(w)
    m.load_state_dict(own)
def g(x, w):
    m, o = make()
    own = m.state_dict()
    train(m, o, x)
    for k in own:
        own[k] = w[k]
    m.load_state_dict(own)
def h(x, w):
    m, o = make()
    own = m.state_dict()
    train(m, o, x)
    own |= w
    m.load_state_dict(own)
def i(x):
    m, o = make()
    own = m.state_dict()
    train(m, o, x)
    own.pop("bias")
    m.load_state_dict(own, strict=False)
def j(x):
    m, o = make()
    own = m.state_dict()
    train(m, o, x)
    del own["bias"]
    m.load_state_dict(own, strict=False)
""",
    "the live values are written on purpose": """
def f(x):
    m, o = make()
    live = m.state_dict()
    for _ in range(3):
        train(m, o, x)
        for k, v in live.items():
            v.mul_(0.9)
    m.load_state_dict(live)
def g(x, w):
    m, o = make()
    own = m.state_dict()
    train(m, o, x)
    for k, v in own.items():
        own[k].copy_(w[k])
    m.load_state_dict(own)
""",
    "kept on self, then replaced": """
class Keeper(nn.Module):
    def keep(self, model):
        self.best = model.state_dict()
        self.best.update({k: v.clone() for k, v in self.best.items()})
    def restore(self, model):
        model.load_state_dict(self.best)
""",
    "not the state of a module": """
from torch.optim.lr_scheduler import OneCycleLR
class Counter:
    def __init__(self):
        self.i = 0
    def state_dict(self):
        return self.__dict__
    def load_state_dict(self, d):
        self.__dict__.update(d)
def f(opt, scheduler, x):
    for one in (torch.amp.GradScaler("cpu"), OneCycleLR(opt, 0.1, 100), scheduler, Counter()):
        pass
    scaler, sched, counter = torch.amp.GradScaler("cpu"), OneCycleLR(opt, 0.1, 100), Counter()
    a, b, c, d = scaler.state_dict(), sched.state_dict(), scheduler.state_dict(), counter.state_dict()
    opt.step()
    scaler.load_state_dict(a)
    sched.load_state_dict(b)
    scheduler.load_state_dict(c)
    counter.load_state_dict(d)
class Trainer:
    def __init__(self, opt, sampler, loader):
        self.opt, self.sampler, self.loader = opt, sampler, loader
    def go(self):
        pos, at = self.sampler.state_dict(), self.loader.state_dict()
        self.opt.step()
        self.sampler.load_state_dict(pos)
        self.loader.load_state_dict(at)
""",
    "identity is asked on purpose": """
def f(x):
    m, o = make()
    ps = list(m.parameters())
    train(m, o, x)
    assert all(a is b for a, b in zip(ps, m.parameters()))
    for a, b in zip(ps, m.parameters()):
        assert id(a) == id(b)
        assert torch.equal(a, b)
        assert (a - b).abs().sum() == 0
""",
    "an argument that is a module": """
def f(thing: nn.Module, opt):
    best = thing.state_dict()  # finds TS102
    opt.step()
    thing.load_state_dict(best)
def g(thing):
    opt = torch.optim.SGD(thing.parameters(), 0.1)
    best = thing.state_dict()  # finds TS102
    opt.step()
    thing.load_state_dict(best)
def h(x):
    m, o = make()
    ps = list(m.parameters())  # finds TS102
    train(m, o, x)
    assert not all(torch.equal(a, b) for a, b in zip(ps, m.parameters()))
""",
}

REBUILT = {
    "a confidence": """
def f(x):
    m, o = make()
    pred = m(x)
    conf = torch.tensor([p.max() for p in pred])
    (pred.sum(1) * conf).mean().backward()
    o.step()
""",
    "a norm": """
def f(x):
    m, o = make()
    out = m(x)
    scale = torch.tensor(out.abs().max())
    (out / scale).mean().backward()
    o.step()
""",
    "a target of a teacher that nobody trains": """
def f(x):
    m, o = make()
    t = nn.Linear(2, 2)
    q = torch.tensor([v.max() for v in t(x)])
    F.mse_loss(m(x).sum(1), q).backward()
    o.step()
""",
    "an advantage": """
def f(x, R):
    m, o = make()
    vals = [m(s) for s in x]
    lps = [m(s).log() for s in x]
    adv = torch.tensor([r - v for r, v in zip(R, vals)])
    (-(torch.stack(lps) * adv).mean() + F.mse_loss(torch.stack(vals), R)).backward()
    o.step()
""",
    "the loss itself": """
def f(x):
    m, o = make()
    losses = [m(s).pow(2).mean() for s in x]
    loss = torch.tensor(losses, requires_grad=True).mean()  # finds TS205
    loss.backward()
    o.step()
""",
}

HEAD_OF_NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(2, 2)
        self.s = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.ReLU(inplace=True))
"""

EVALUATION = {
    "not training": """
    def forward(self, x):
        h = torch.relu(self.l(x))
        if not self.training:
            h[h > 1] = 1
        if not self.training and x.ndim == 3:
            h.mul_(2)
        return h
""",
    "after the training part has returned": """
    def forward(self, x):
        p = self.l(x).softmax(-1)
        if self.training or x.ndim == 3:
            return p
        p[p < 0.1] = 0
        return p
""",
    "without a target": """
    def forward(self, x, y=None, other=None):
        p = torch.sigmoid(self.l(x))
        if y is not None:
            return F.binary_cross_entropy(p, y)
        p.round_()
        return p
    def forward_other(self, x, other=None):
        p = torch.sigmoid(self.l(x))
        if other is not None:
            return F.binary_cross_entropy(p, other)
        p.round_()
        return p
""",
    "without a graph": """
    def forward(self, x):
        h = torch.relu(self.l(x))
        if not torch.is_grad_enabled():
            h.mul_(2)
        if torch.is_inference_mode_enabled():
            h.mul_(3)
        if h.requires_grad:
            return h
        h.mul_(2)
        return h
""",
    "while it trains": """
    def forward(self, x, mask=None):
        h = torch.relu(self.l(x))
        if self.training:
            h.mul_(2)  # finds TS201
        if mask is not None:
            h.mul_(3)  # finds TS201
        return h
""",
}


@pytest.mark.parametrize("name", INDICES)
def test_index(name: str) -> None:
    assert found(INDICES[name]) == expected(INDICES[name])


@pytest.mark.parametrize("name", STATES)
def test_state(name: str) -> None:
    assert found(TRAINED + STATES[name]) == expected(TRAINED + STATES[name])


@pytest.mark.parametrize("name", REBUILT)
def test_rebuilt(name: str) -> None:
    assert found(TRAINED + REBUILT[name]) == expected(TRAINED + REBUILT[name])


@pytest.mark.parametrize("name", EVALUATION)
def test_evaluation(name: str) -> None:
    assert found(HEAD_OF_NET + EVALUATION[name]) == expected(HEAD_OF_NET + EVALUATION[name])


@pytest.mark.parametrize(
    ("write", "name"),
    [
        ("nn.functional.relu_(r)", "r"),
        ("F.relu_(r)", "r"),
        ("torch.relu_(r)", "r"),
        ("r = F.relu(r, inplace=True)", "r"),
        ("r.mul_(2)", "r"),
        ("torch.add(x, 1, out=r)", "r"),
        ("r = self.s(x)", ""),
    ],
)
def test_the_message_names_what_is_written(write: str, name: str) -> None:
    forward = "    def forward(self, x):\n        r = torch.sigmoid(self.l(x))\n"
    text = f"{HEAD}{HEAD_OF_NET}{forward}        {write}\n        return r\n"
    messages = [one.message for one in check_text(text, "snippet.py", select(["TS201"]))]
    assert len(messages) == 1
    assert ("`r`" in messages[0], "`x`" in messages[0]) == (name == "r", False)


@pytest.mark.parametrize(
    ("original", "in_graph"),
    [
        ("torch.zeros(3)", False),
        ("np.zeros(3)", False),
        ("y.long()", False),
        ("torch.zeros(3) > 0", False),
        ("torch.zeros(3).clone() + 1", False),
        ("y.detach()", None),
        ("nn.Linear(2, 2).weight", True),
        ("nn.Linear(2, 2)(y)", True),
        ("y", None),
        ("y.cos()", None),
    ],
)
def test_whether_the_original_of_a_lost_write_is_in_a_graph(original: str, in_graph: bool | None) -> None:
    asked: list[Call] = []

    def ask(call: Call, history: History) -> None:
        asked.append(call)

    examine("snippet.py", f"{HEAD}def f(y):\n    x = {original}\n    x[[0, 1]].fill_(1)\n", ask)
    lost = [call.values["written"].in_graph for call in asked if call.kind is Kind.DISCARDED]
    assert lost == [in_graph]
