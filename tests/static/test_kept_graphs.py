"""Graphs that outlive their backward, and gradients that flow where nobody wants them."""

from __future__ import annotations

import pytest

from static.checking import expected, found

KEPT = {
    "a running total, written out": """
model, total = nn.Linear(3, 1), 0.0
for x in torch.ones(4, 2, 3):
    loss = model(x).pow(2).mean()
    loss.backward()
    total = total + loss  # finds TS206
print(total)
""",
    "a meter of the project": """
class Meter:
    def __init__(self):
        self.sum, self.count = 0, 0
    def update(self, value, n):
        self.sum += value * n  # finds TS206
        self.count += n
def train(model, data):
    meter = Meter()
    for x in data:
        loss = model(x).square().mean()
        loss.backward()
        meter.update(loss, len(x))
    return meter.sum / meter.count
train(nn.Linear(3, 1), torch.ones(4, 2, 3))
""",
    "a list in a dict of the trainer": """
class Agent:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.history = {"loss": [], "steps": 0}
    def learn(self, x):
        loss = self.net(x).pow(2).mean()
        loss.backward()
        self.history["loss"].append(loss)  # finds TS206
        self.history["steps"] += 1
agent = Agent()
for _ in range(6):
    agent.learn(torch.ones(2, 3))
""",
    "outputs collected for a report": """
net, outputs = nn.Linear(3, 1), []
for _ in range(6):
    out = net(torch.ones(2, 3))
    out.pow(2).mean().backward()
    outputs.append(out.sigmoid())  # finds TS206
""",
    "what a method adds to its own attributes": """
from collections import defaultdict
class Trainer:
    def __init__(self, model, criterion):
        self.model, self.criterion, self.total = model, criterion, 0
        self.losses, self.metrics = [], defaultdict(list)
    def step(self, x, y):
        loss = self.criterion(self.model(x), y)
        self.total += loss  # finds TS206
        loss.backward()
        self.losses.append(loss)  # finds TS206
        self.metrics["loss"].append(loss)  # finds TS206
""",
    "a scaled loss of a model from elsewhere": """
from library import Model
def train(loader, scaler, accelerator):
    model, total, other = Model(), 0, 0
    for batch in loader:
        loss = model(**batch).loss
        scaler.scale(loss).backward()
        total += loss  # finds TS206
    for batch in loader:
        loss = model(**batch).loss
        accelerator.backward(loss)
        other += loss  # finds TS206
""",
    "statistics of a codebook in a buffer": """
class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Parameter(torch.ones(6, 3))
        self.register_buffer("mean", torch.zeros(3))
    def blend(self, name, value):
        setattr(self, name, getattr(self, name) * 0.9 + value * 0.1)  # finds TS206
    def forward(self, x):
        if self.training:
            self.blend("mean", self.embed.mean(dim=0))
        return x @ self.embed.t()
codes = Codes()
for _ in range(9):
    codes(torch.ones(2, 3)).sum().backward()
""",
    "a baseline of the policy loss": """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.action, self.value = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
    def forward(self, x):
        h = self.body(x).relu()
        return torch.softmax(self.action(h), -1), self.value(h)
policy, returns = Policy(), torch.ones(6)
probs, values = policy(torch.ones(6, 4))
chosen = torch.distributions.Categorical(probs)
advantages = returns - values.squeeze(-1)
actor = -(chosen.log_prob(chosen.sample()) * advantages).mean()  # finds TS207
(actor + advantages.pow(2).mean()).backward()
""",
    "a target in a method": """
class Learner:
    def __init__(self):
        self.q, self.gamma = nn.Linear(4, 2), 0.9
    def update(self, s, a, r, s2, done):
        prediction = self.q(s).gather(1, a.unsqueeze(1)).squeeze(1)
        best = self.q(s2).max(dim=1)[0]
        target = r + self.gamma * best * (1 - done)  # finds TS207
        F.smooth_l1_loss(prediction, target).backward()
""",
    "a target in a function that returns its loss": """
def td_loss(q_net, s, a, r, s2, gamma=0.9):
    target = r + gamma * q_net(s2).max(1)[0]  # finds TS207
    return F.mse_loss(q_net(s).gather(1, a).squeeze(1), target)
""",
    "a generator behind a helper": """
gen, dis = nn.Sequential(nn.Linear(2, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
opt_g, opt_d = torch.optim.Adam(gen.parameters()), torch.optim.Adam(dis.parameters())
def train_d(real):
    opt_d.zero_grad()
    fake = gen(torch.randn(8, 2))
    judged = dis(fake)  # finds TS207
    (judged.mean() - dis(real).mean()).backward()
    opt_d.step()
def train_g():
    opt_g.zero_grad()
    (-dis(gen(torch.randn(8, 2))).mean()).backward()
    opt_g.step()
for _ in range(4):
    train_d(torch.ones(8, 4))
    train_g()
""",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_or_leaks_is_named(name: str) -> None:
    assert found(KEPT[name]) == expected(KEPT[name])


MEANT = {
    "one backward goes through the total": """
net, total = nn.Linear(3, 1), 0
for _ in range(4):
    total += net(torch.ones(1, 3)).pow(2).mean()
total.backward()
""",
    "a total of this step alone": """
net = nn.Linear(3, 1)
for _ in range(4):
    one, other, total = net(torch.ones(1, 3)).mean(), net(torch.zeros(1, 3)).mean(), 0
    one.backward()
    other.backward()
    for loss in (one, other):
        total += loss
""",
    "two losses of one step are added up for the log": """
net = nn.Linear(3, 1)
for _ in range(4):
    real, fake = net(torch.ones(1, 3)).mean(), net(torch.zeros(1, 3)).mean()
    real.backward()
    fake.backward()
    both = real + fake
    print(both.item())
""",
    "the last loss is remembered": """
class Trainer:
    def __init__(self):
        self.net, self.last = nn.Linear(3, 1), None
    def step(self):
        loss = self.net(torch.ones(1, 3)).mean()
        loss.backward()
        self.last = loss
trainer = Trainer()
for _ in range(4):
    trainer.step()
""",
    "a helper detaches what it is given": """
def detached(states):
    return [state.data for state in states]
cell = nn.LSTM(3, 4)
states = (torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))
for _ in range(4):
    states = detached(states)
    out, states = cell(torch.ones(1, 1, 3), states)
    out.mean().backward()
""",
    "an episode's values belong to it": """
class Agent:
    def __init__(self):
        self.net = nn.Linear(4, 2)
    def act(self, state):
        probs = self.net(state).softmax(-1)
        return torch.log(probs[0])
    def update(self, log_probs):
        torch.stack(log_probs).sum().backward()
def play(env, agent):
    for episode in range(9):
        log_probs = []
        state = env.reset()
        while True:
            log_probs.append(agent.act(state))
            state, done = env.step()
            if done:
                agent.update(log_probs)
                break
""",
    "an attribute is what the backward starts from, a window is bounded": """
from collections import deque
class Trainer:
    def __init__(self, model):
        self.model, self.total, self.losses, self.window = model, 0, [], deque(maxlen=100)
        self.head = nn.Linear(2, 1)
    def accumulate(self, x):
        loss = self.model(x).mean()
        self.total += loss
        self.total.backward()
    def sum_up(self, x):
        loss = self.head(x).mean()
        self.total += loss
        self.total.backward()
    def stack(self, x):
        loss = self.model(x).mean()
        self.losses.append(loss)
        torch.stack(self.losses).sum().backward()
    def log(self, x):
        loss = self.model(x).mean()
        loss.backward()
        self.window.append(loss)
        self.losses.append(loss.item())
        with torch.no_grad():
            self.total += loss
""",
    "a spiking neuron keeps its potential between two resets": """
class Neuron(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.register_buffer("potential", torch.zeros(3))
    def forward(self, x):
        self.potential = self.potential * 0.9 + self.fc(x)
        return self.potential
neuron = Neuron()
for batch in torch.ones(4, 5, 3):
    neuron.potential = torch.zeros(3)
    out = sum(neuron(x) for x in batch)
    out.sum().backward()
""",
    "a list is emptied by del": """
net, saved = nn.Linear(4, 2), []
for episode in range(9):
    for step in range(3):
        saved.append(net(torch.ones(1, 4)).log_softmax(1)[0, 0])
    torch.stack(saved).sum().backward()
    del saved[:]
""",
    "the judge's gradients of the generator's step are zeroed": """
gen, dis = nn.Linear(2, 4), nn.Linear(4, 1)
opt_g, opt_d = torch.optim.Adam(gen.parameters()), torch.optim.Adam(dis.parameters())
for _ in range(4):
    opt_g.zero_grad()
    (-dis(gen(torch.randn(8, 2)).tanh()).mean()).backward()
    opt_g.step()
    opt_d.zero_grad()
    fake = gen(torch.randn(8, 2)).detach()
    (dis(fake).mean() - dis(torch.ones(8, 4)).mean()).backward()
    opt_d.step()
""",
    "one loss for two networks that nothing leads through": """
gen, dis = nn.Linear(2, 4), nn.Linear(4, 1)
opt_g, opt_d = torch.optim.Adam(gen.parameters()), torch.optim.Adam(dis.parameters())
for _ in range(4):
    (dis(torch.ones(8, 4)).mean() + gen(torch.ones(8, 2)).mean()).backward()
    opt_d.step()
    opt_g.zero_grad()
""",
    "parameters of an optimizer that are not known": """
from itertools import *
enc, gen, dis = nn.Linear(2, 4), nn.Linear(2, 4), nn.Linear(4, 1)
opt_g = torch.optim.Adam(gather(enc.parameters(), gen.parameters()))
opt_d = torch.optim.Adam(dis.parameters())
for _ in range(4):
    dis(gen(torch.randn(8, 2))).mean().backward()
    opt_d.step()
    opt_g.step()
    for net in (enc, gen, dis):
        net.zero_grad()
""",
    "a target network, a target without recording, a detached advantage": """
q, old, critic, actor = nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(4, 1), nn.Linear(4, 2)
s, r = torch.ones(3, 4), torch.ones(3)
F.mse_loss(q(s).max(1)[0], r + 0.9 * old(s).max(1)[0]).backward()
with torch.no_grad():
    target = r + 0.9 * q(s).max(1)[0]
F.mse_loss(q(s).max(1)[0], target).backward()
advantage = r - critic(s).squeeze(1)
(-(actor(s).log_softmax(1)[:, 0] * advantage.detach()).mean() + advantage.pow(2).mean()).backward()
""",
}


@pytest.mark.parametrize("name", MEANT)
def test_what_is_meant_is_not_reported(name: str) -> None:
    assert found(MEANT[name]) == []
