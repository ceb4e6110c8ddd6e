"""Graphs that are kept after their backward, and gradients that flow where they are thrown away."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from runtime.watching import lines, loud, watch

TRAINING = """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def step():
    loss = F.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
"""

KEPT = {
    "a list in a function": """
        def main():
            names, losses = [], []
            for i in range(15):
                loss = step()
                names.append(i)
                losses.append(loss)  # here
        main()
        """,
    "a total in a function": """
        def main():
            total = 0.0
            for i in range(15):
                total = total + step()  # here
            return float(total.detach())
        main()
        """,
    "tuples in an attribute": """
        class Trainer:
            def __init__(self):
                self.history = []
            def run(self, i):
                self.history.append((i, step()))  # here
        def main():
            trainer = Trainer()
            for i in range(15):
                trainer.run(i)
        main()
        """,
    "a dict of lists, of which one is plain": """
        import collections
        def main():
            logs = collections.defaultdict(list)
            for i in range(15):
                loss = step()
                logs["number"].append(loss.item())
                logs["tensor"].append(loss)  # here
        main()
        """,
    "a window, and its mean computed anew each time": """
        import collections
        def main():
            window = collections.deque(maxlen=50)
            for i in range(15):
                window.append(step())  # here
                mean = sum(window) / len(window)
        main()
        """,
    "a meter that adds up in place": """
        class Meter:
            def __init__(self):
                self.sum = 0
            def update(self, value):
                self.sum += value  # here
        meter = Meter()
        for i in range(15):
            meter.update(step())
        """,
    "a buffer": """
        class Centre(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("centre", torch.zeros(()))
            def forward(self, value):
                self.centre = 0.9 * self.centre + 0.1 * value  # here
        centre = Centre()
        for i in range(15):
            centre(step())
        """,
    "rows of what is computed from the outputs after the backward": """
        outputs = []
        for i in range(15):
            out = net(torch.randn(8, 4))
            out.pow(2).mean().backward()
            outputs.extend(out.softmax(-1))  # here
        """,
}


def marked(code: str, mark: str = "# here") -> list[str]:
    return [line.strip() for line in code.splitlines() if mark in line]


@pytest.mark.parametrize("name", KEPT)
def test_the_line_that_keeps_the_graphs(name: str, tmp_path: Path) -> None:
    record = watch(TRAINING + "\n" + textwrap.dedent(KEPT[name]), tmp_path)
    assert lines(record, "TS206") == marked(KEPT[name])


NOT_KEPT = {
    "numbers": """
        total, losses = 0.0, []
        for i in range(15):
            loss = step()
            total += loss.item()
            losses.append(loss.detach())
        """,
    "the last loss alone": """
        for i in range(15):
            last = step()
        """,
    "losses that one backward goes through at last": """
        other = nn.Linear(4, 1)
        losses, total = [], 0
        for i in range(15):
            losses.append((other(torch.randn(8, 4)) - 1).pow(2).mean())
            total = total + other(torch.randn(8, 4)).tanh().mean()
            step()
        (torch.stack(losses).sum() + total).backward()
        """,
    "an inner loop of first order": """
        weight = torch.randn(4, 1, requires_grad=True)
        for outer in range(4):
            fast = weight
            for inner in range(12):
                loss = (torch.randn(8, 4) @ fast - 1).pow(2).mean()
                fast = fast - 0.1 * torch.autograd.grad(loss, fast)[0]
            (torch.randn(8, 4) @ fast).pow(2).mean().backward()
        """,
    "an inner loop of second order": """
        weight = torch.randn(4, 1, requires_grad=True)
        fast = weight
        for inner in range(12):
            loss = (torch.randn(8, 4) @ fast - 1).pow(2).mean()
            fast = fast - 0.1 * torch.autograd.grad(loss, fast, create_graph=True)[0]
        fast.sum().backward()
        """,
    "a graph kept from before the loop": """
        other = nn.Linear(4, 4)
        once = other(torch.randn(8, 4)).tanh()
        for i in range(15):
            step()
        once.sum().backward()
        """,
    "weights of every step": """
        history = []
        for i in range(15):
            step()
            history.append(net[0].weight.clone())
        """,
}


@pytest.mark.parametrize("name", NOT_KEPT)
def test_what_keeps_no_graph_for_nothing_is_silent(name: str, tmp_path: Path) -> None:
    assert loud(watch(TRAINING + "\n" + textwrap.dedent(NOT_KEPT[name]), tmp_path)) == []


def test_looking_keeps_nothing_alive(tmp_path: Path) -> None:
    code = """
        import gc, weakref
        alive = []
        def main():
            losses = []
            for i in range(15):
                losses.append(step())
            alive.extend(weakref.ref(loss) for loss in losses)
            held = locals()
            return len(held)
        main()
        gc.collect()
        assert not any(ref() is not None for ref in alive)
        """
    record = watch(TRAINING + "\n" + textwrap.dedent(code), tmp_path)
    assert "raised" not in record.summary


LEAKS = {
    "an advantage with the critic's graph": """
        policy, critic = nn.Linear(4, 3), nn.Linear(4, 1)
        states, rewards = torch.randn(8, 4), torch.randn(8)
        chosen = torch.distributions.Categorical(logits=policy(states))
        action = chosen.sample()
        advantage = rewards - critic(states).squeeze(1)
        loss = -(chosen.log_prob(action) * advantage).mean()  # here
        loss.backward()
        """,
    "the ratio of a normal policy": """
        mean, critic = nn.Linear(4, 2), nn.Linear(4, 1)
        states = torch.randn(8, 4)
        chosen = torch.distributions.Normal(mean(states), 1.0)
        log_prob = chosen.log_prob(chosen.sample()).sum(-1)
        advantage = torch.randn(8) - critic(states).squeeze(-1)
        loss = -((log_prob - log_prob.detach()).exp() * advantage).mean()  # here
        loss.backward()
        """,
    "a value target with its graph": """
        value = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        states, rewards, done, gamma = torch.randn(8, 4), torch.randn(8, 1), torch.zeros(8, 1), 0.9
        target = rewards + gamma * value(states + 1) * (1 - done)  # here
        (target - value(states)).pow(2).mean().backward()
        """,
    "fake images that are judged attached": """
        class Part(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.a, self.b = nn.Linear(2, 8), nn.Linear(8, size)
            def forward(self, x):
                return self.b(self.a(x).relu())

        class Trainer:
            def __init__(self):
                self.make, self.judge = Part(2), Part(1)
                self.for_make = torch.optim.SGD(self.make.parameters(), lr=0.1)
                self.for_judge = torch.optim.SGD(self.judge.parameters(), lr=0.1)
            def train_judge(self, real, fake):
                self.for_judge.zero_grad()
                on_real = self.judge(real)
                on_fake = self.judge(fake)  # here
                (on_fake.mean() - on_real.mean()).backward()
                self.for_judge.step()
            def train_make(self):
                self.for_make.zero_grad()
                (-self.judge(self.make(torch.randn(8, 2))).mean()).backward()
                self.for_make.step()

        def main():
            trainer = Trainer()
            for _ in range(8):
                trainer.train_judge(torch.randn(8, 2), trainer.make(torch.randn(8, 2)))
                trainer.train_make()
        main()
        """,
}


@pytest.mark.parametrize("name", LEAKS)
def test_the_line_where_a_detach_is_missing(name: str, tmp_path: Path) -> None:
    record = watch(textwrap.dedent(LEAKS[name]), tmp_path)
    assert lines(record, "TS207") == marked(LEAKS[name])


NO_LEAKS = {
    "the published way": """
        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.policy, self.value = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 1)
            def forward(self, x):
                body = self.body(x).tanh()
                return torch.distributions.Categorical(logits=self.policy(body)), self.value(body).squeeze(-1)
        both = Both()
        for _ in range(4):
            chosen, values = both(torch.randn(8, 4))
            advantage = torch.randn(8) - values
            policy_loss = -(chosen.log_prob(chosen.sample()) * advantage.detach()).mean()
            (policy_loss + advantage.pow(2).mean() - 0.01 * chosen.entropy().mean()).backward()
        """,
    "a critic that leads an actor": """
        import copy
        actor, critic = nn.Linear(3, 1), nn.Linear(4, 1)
        target = copy.deepcopy(critic)
        for_actor = torch.optim.SGD(actor.parameters(), lr=0.1)
        for_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
        for _ in range(10):
            s = torch.randn(8, 3)
            with torch.no_grad():
                goal = torch.randn(8, 1) + 0.9 * target(torch.cat([s, actor(s)], 1))
            for_critic.zero_grad()
            F.mse_loss(critic(torch.cat([s, torch.randn(8, 1)], 1)), goal).backward()
            for_critic.step()
            for_actor.zero_grad()
            (-critic(torch.cat([s, actor(s)], 1)).mean()).backward()
            for_actor.step()
        """,
    "weighted and focal losses": """
        net, gate = nn.Linear(5, 3), nn.Linear(5, 1)
        for _ in range(3):
            x = torch.randn(8, 5)
            loss = F.cross_entropy(net(x), torch.zeros(8, dtype=torch.long), reduction="none")
            sure, weight = torch.exp(-loss), torch.sigmoid(gate(x)).squeeze(1)
            log_prob = F.log_softmax(net(x), dim=1)
            total = ((1 - sure) * loss).mean() + ((torch.ones(8) - weight) * loss).mean()
            (total + (log_prob.exp() * (log_prob - torch.randn(8, 3))).sum()).backward()
        """,
    "two views of the same input": """
        encoder, predictor = nn.Linear(4, 4), nn.Linear(4, 4)
        for _ in range(3):
            one, other = encoder(torch.randn(8, 4)), encoder(torch.randn(8, 4))
            (F.mse_loss(predictor(one), other.detach()) + F.mse_loss(one, other)).backward()
        """,
}


@pytest.mark.parametrize("name", NO_LEAKS)
def test_gradients_that_are_meant_are_silent(name: str, tmp_path: Path) -> None:
    assert loud(watch(textwrap.dedent(NO_LEAKS[name]), tmp_path)) == []


def test_a_function_mode_of_the_program_is_not_asked_about_gradients(tmp_path: Path) -> None:
    code = """
        from torch.overrides import TorchFunctionMode
        seen = []
        class Mode(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append(getattr(func, "__name__", ""))
                return func(*args, **(kwargs or {}))
        for i in range(15):
            loss = net(torch.randn(8, 4)).pow(2).mean()
            with Mode():
                loss.backward()
            optimizer.step()
            with Mode():
                optimizer.zero_grad()
        assert "grad_fn" not in "".join(seen), seen
        """
    record = watch(TRAINING + "\n" + textwrap.dedent(code), tmp_path)
    assert "raised" not in record.summary
    assert loud(record) == []
