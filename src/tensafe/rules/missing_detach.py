"""A gradient flows where it is thrown away, or where it does harm.

## What it does
Reports the line where a value should have been detached: fake images that a discriminator's loss trains the
generator with, only for the gradients to be zeroed before the generator's step; an advantage that still has
the critic's graph, so that the policy loss trains the critic; a temporal-difference target that the live
network computed with its graph.

The source shows networks and optimizers that are made, or named as such, in the same file; others only a
run sees.

## Why it matters
For the generator it costs a backward through the whole network in each step. For the critic and the target
it is wrong: the critic is pulled away from the returns, and the temporal-difference error shrinks by moving
the target to the prediction. Nothing is raised.

## Instead
`discriminator(fake.detach())`; `advantage = (returns - values).detach()`, with a loss of its own for the
critic; the target under `torch.no_grad()`. A `detach()` on the prediction of the critic's own loss is the
opposite fault: the critic then never trains.

## Fix safety
There is no automatic fix: which side is to be detached is the author's choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.facts import Call, History, Kind
from tensafe.findings import Because, Finding
from tensafe.rules import Bad, Good

CODE = "TS207"
SINCE = "0.1"
SEVERITY = "warning"
AT = Kind.LEAKED
HELP = """`detach()` the value there, or compute it under `torch.no_grad()`"""

SETUP = """
import torch
import torch.nn.functional as F
from torch import nn
actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
states, rewards = torch.randn(8, 4), torch.randn(8)
"""
EXAMPLES = [
    Bad("""
        log_prob = F.log_softmax(actor(states), dim=1)[:, 0]
        values = critic(states).squeeze(1)
        loss = -(log_prob * (rewards - values)).mean()  # finds TS207
        loss.backward()
        """),
    Bad("""
        gamma = 0.9
        prediction = actor(states).gather(1, torch.zeros(8, 1, dtype=torch.long))
        best = actor(states + 1).max(dim=1, keepdim=True).values
        target = rewards.unsqueeze(1) + gamma * torch.ones(8, 1) * best  # finds TS207
        F.mse_loss(prediction, target).backward()
        """),
    Bad("""
        generator, judge = nn.Sequential(nn.Linear(2, 4), nn.Tanh()), nn.Linear(4, 1)
        for_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
        for_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
        for _ in range(6):
            fake = generator(torch.randn(8, 2))
            for_judge.zero_grad()
            judged = judge(fake)  # finds TS207
            (judged.mean() - judge(states).mean()).backward()
            for_judge.step()
            for_generator.zero_grad()
            (-judge(generator(torch.randn(8, 2))).mean()).backward()
            for_generator.step()
        """),
    Good(
        """
        log_prob = F.log_softmax(actor(states), dim=1)[:, 0]
        values = critic(states).squeeze(1)
        advantage = rewards - values
        loss = -(log_prob * advantage.detach()).mean() + advantage.pow(2).mean()
        loss.backward()
        """,
        because="the policy loss takes the advantage as a number, the critic has a loss of its own",
    ),
    Good(
        """
        generator, judge = nn.Sequential(nn.Linear(2, 4), nn.Tanh()), nn.Linear(4, 1)
        for_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
        for_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
        for _ in range(6):
            fake = generator(torch.randn(8, 2))
            for_judge.zero_grad()
            (judge(fake.detach()).mean() - judge(states).mean()).backward()
            for_judge.step()
            for_generator.zero_grad()
            (-judge(fake).mean()).backward()
            for_generator.step()
        """,
        because="the judge's own gradient of the last backward is needed on the way to the generator",
    ),
    Good(
        """
        F.mse_loss(actor(states), actor(states + 0.1)).backward()
        """,
        because="a consistency loss trains both sides",
    ),
]

WORDS = {
    "baseline": (
        "the policy loss also trains the critic through the advantage",
        "the advantage still has the critic's graph here",
    ),
    "reference values": (
        "the policy loss also trains the critic through its reference values",
        "the reference values get their graph here",
    ),
    "target": (
        "the target comes from the network that is trained, with its graph: the loss also moves the target",
        "the target keeps its graph here",
    ),
    "discarded": (
        "the gradients that flow back from here are zeroed before any step uses them",
        "no `detach()` here",
    ),
}


def find(call: Call, history: History) -> Iterator[Finding]:
    leak = call.values["leak"]
    made = leak.last(Kind.MADE)
    if call.note not in WORDS or made is None or made.site is None:
        return
    message, label = WORDS[call.note]
    to = f" ({leak.label})" if leak.label and call.note != "target" else ""
    because: tuple[Because, ...] = ()
    if call.site is not None and call.site.line != made.site.line:
        because = (Because(call.site, "this backward carries the gradient", when="after"),)
    yield Finding(CODE, message=message + to, at=made.site, label=label, because=because)
