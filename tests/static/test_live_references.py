"""Live references taken for copies: found in snippets, and their correct twins left alone."""

from __future__ import annotations

import pytest

from static.checking import expected, found

SNIPPETS = {
    "best_weights_in_a_loop": """
model = nn.Linear(2, 2)
opt = torch.optim.Adam(model.parameters())
best_loss, best_weights = 1e9, None
for epoch in range(5):
    loss = model(torch.ones(1, 2)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if loss.item() < best_loss:
        best_loss = loss.item()
        best_weights = model.state_dict()  # finds TS102
model.load_state_dict(best_weights)
""",
    "best_weights_of_an_unknown_training": """
def train(model, loader, optimizer):
    best_acc = 0
    for epoch in range(5):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        acc = evaluate(model)
        if acc > best_acc:
            best_acc = acc
            best_model_wts = model.state_dict()  # finds TS102
    model.load_state_dict(best_model_wts)
    return model
""",
    "best_weights_on_self": """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.best = None

    def fit(self, x, y):
        for _ in range(3):
            loss = F.mse_loss(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.keep()

    def keep(self):
        self.best = self.model.state_dict()  # finds TS102

    def restore(self):
        self.model.load_state_dict(self.best)
""",
    "best_weights_as_a_dict_on_self": """
class EarlyStopping:
    def __init__(self):
        self.best_state = None

    def __call__(self, loss, model):
        if self.best_state is None or loss < self.best:
            self.best_state = {k: v for k, v in model.state_dict().items()}  # finds TS102
        return False

    def restore(self, model):
        model.load_state_dict(self.best_state)
""",
    "best_weights_cloned_on_self": """
class EarlyStopping:
    def __init__(self):
        self.best_state = None

    def __call__(self, loss, model):
        if self.best_state is None or loss < self.best:
            self.best_state = {k: v.clone() for k, v in model.state_dict().items()}
        return False

    def restore(self, model):
        model.load_state_dict(self.best_state)
""",
    "ema_backup_copied_back": """
class EMA:
    def __init__(self, model):
        self.shadow = {n: p.data.clone() for n, p in model.named_parameters()}

    def store(self, model):
        self.backup = {n: p.data for n, p in model.named_parameters()}  # finds TS102

    def apply(self, model):
        for n, p in model.named_parameters():
            p.data.copy_(self.shadow[n])

    def restore(self, model):
        for n, p in model.named_parameters():
            p.data.copy_(self.backup[n])
""",
    "ema_backup_swapped_out": """
class EMA:
    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                param.data = self.backup[name]
        self.backup = {}
""",
    "weight_through_data": """
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
before = model.weight.data  # finds TS102
model(torch.ones(2, 3)).sum().backward()
opt.step()
print((model.weight.data - before).abs().max())
""",
    "weight_cloned": """
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
before = model.weight.detach().clone()
model(torch.ones(2, 3)).sum().backward()
opt.step()
print((model.weight.data - before).abs().max())
""",
    "parameters_detached_in_a_list": """
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
old = [p.detach() for p in model.parameters()]  # finds TS102
model(torch.ones(2, 3)).sum().backward()
opt.step()
for a, b in zip(old, model.parameters()):
    assert not torch.equal(a, b)
""",
    "target_that_is_the_online_net": """
net = nn.Linear(3, 1)
target_net = net  # finds TS102
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(10):
    with torch.no_grad():
        want = target_net(torch.ones(1, 3))
    loss = F.mse_loss(net(torch.ones(1, 3)), want)
    opt.zero_grad(); loss.backward(); opt.step()
    if step % 5 == 0:
        target_net.load_state_dict(net.state_dict())
""",
    "target_that_is_a_copy": """
net = nn.Linear(3, 1)
target_net = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(10):
    with torch.no_grad():
        want = target_net(torch.ones(1, 3))
    loss = F.mse_loss(net(torch.ones(1, 3)), want)
    opt.zero_grad(); loss.backward(); opt.step()
    if step % 5 == 0:
        target_net.load_state_dict(net.state_dict())
""",
    "initial_weights_per_task": """
def finetune(model, tasks):
    init = model.state_dict()  # finds TS102
    for task in tasks:
        model.load_state_dict(init)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in task:
            loss = F.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
""",
    "reptile_interpolation": """
def reptile(model, tasks, eps):
    weights_before = model.state_dict()  # finds TS102
    for x, y in tasks:
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        F.mse_loss(model(x), y).backward()
        opt.step()
    weights_after = model.state_dict()
    between = {n: old + (weights_after[n] - old) * eps for n, old in weights_before.items()}
    model.load_state_dict(between)
""",
    "adam_state_handed_over": """
net = nn.Linear(2, 2)
opt_a = torch.optim.Adam(net.parameters())
net(torch.ones(1, 2)).sum().backward()
opt_a.step()
opt_b = torch.optim.Adam(nn.Linear(2, 2).parameters())
state = opt_a.state_dict()  # finds TS102
opt_b.load_state_dict(state)
opt_a.step()
""",
    "agent_with_one_network": """
class Agent:
    def __init__(self, net):
        self.policy_net = net.cuda()
        self.target_net = net.cuda()  # finds TS102
        self.target_net.eval()
        self.optimizer = torch.optim.Adam(self.policy_net.parameters())
    def optimise(self, batch):
        loss = self.policy_net(batch).sum() - self.target_net(batch).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
""",
    "teacher_that_is_the_model": """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.teacher = model.to("cpu")  # finds TS102
        self.optimizer = torch.optim.Adam(self.model.parameters())
    def step(self, x):
        with torch.no_grad():
            t = self.teacher(x)
        loss = F.mse_loss(self.model(x), t)
        loss.backward()
        self.optimizer.step()
""",
    "federated_round_with_copies": """
class Server:
    def __init__(self):
        self.model = nn.Linear(2, 2)
    def broadcast(self):
        return self.model.state_dict()
class Client:
    def __init__(self, model):
        self.model = model
    def round(self, weights, x, y):
        self.model.load_state_dict(weights)
        opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        F.mse_loss(self.model(x), y).backward()
        opt.step()
        return self.model.state_dict()
server = Server()
clients = [Client(copy.deepcopy(server.model)) for _ in range(3)]
replies = [c.round(server.broadcast(), torch.rand(2, 2), torch.rand(2, 2)) for c in clients]
server.model.load_state_dict({k: sum(r[k] for r in replies) / 3 for k in replies[0]})
""",
    "proximal_term": """
model = nn.Linear(2, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
w0 = [p.data for p in model.parameters()]  # finds TS102
for _ in range(3):
    loss = model(torch.rand(1, 2)).sum()
    for p, q in zip(model.parameters(), w0):
        loss = loss + (p - q).pow(2).sum()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "state_dict_shallow_copied": """
model = nn.Linear(2, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
before = copy.copy(model.state_dict())  # finds TS102
model(torch.rand(1, 2)).sum().backward()
opt.step()
after = model.state_dict()
delta = {k: after[k] - before[k] for k in after}
""",
    "checkpoint_saved_at_once": """
model = nn.Linear(2, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(1, 2)).sum().backward()
opt.step()
checkpoint = {"model": model.state_dict(), "opt": opt.state_dict()}
torch.save(checkpoint, "x.pt")
opt.step()
""",
    "checkpoint_kept_and_restored": """
model = nn.Linear(2, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
checkpoint = {"model": model.state_dict(), "epoch": 1}  # finds TS102
model(torch.rand(1, 2)).sum().backward()
opt.step()
model.load_state_dict(checkpoint["model"])
""",
    "weights_swapped_for_evaluation": """
def evaluate(model, ema_weights, loader):
    saved = model.state_dict()  # finds TS102
    model.load_state_dict(ema_weights)
    score = run(model, loader)
    model.load_state_dict(saved)
    return score
""",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    assert found(SNIPPETS[name]) == expected(SNIPPETS[name])
