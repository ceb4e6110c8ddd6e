"""Overlaps, repeats, arrays, ties, processes and saves: what is told, and what is plainly meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.watching import lines, loud, watch

BAD = {
    "columns shifted in place": (
        "TS104",
        "c = torch.arange(12.0).view(3, 4)\nc[:, 1:] += c[:, :-1]  # here\n",
    ),
    "a square onto its transpose": (
        "TS104",
        "c = torch.arange(12.0).view(3, 4)\nc[:3, :3].copy_(c[:3, :3].t())  # here\n",
    ),
    "a mask over expanded rows": (
        "TS104",
        """
        import warnings
        warnings.simplefilter("ignore")
        mask = torch.zeros(1, 4).expand(3, 4)
        mask.masked_fill_(torch.eye(3, 4, dtype=torch.bool), 1.0)  # here
        """,
    ),
    "a list of one tensor, written by index": (
        "TS103",
        """
        class Meter:
            def __init__(self, count):
                self.sums = [torch.zeros(2)] * count  # here

            def add(self, index, value):
                self.sums[index].add_(value)

        meter = Meter(3)
        meter.add(0, 1.0)
        """,
    ),
    "one layer as many": (
        "TS103",
        "layer = nn.Linear(3, 3)\nlayers = nn.ModuleList([layer] * 3)  # here\n",
    ),
    "before and after are one array": (
        "TS105",
        """
        layer = nn.Linear(3, 3)
        before = layer.weight.detach().numpy()  # here
        with torch.no_grad():
            layer.weight.add_(1)
        after = layer.weight.detach().numpy()
        change = np.abs(after - before).max()
        """,
    ),
    "snapshots by step": (
        "TS105",
        """
        layer, kept = nn.Linear(3, 3), {}
        for step in range(4):
            with torch.no_grad():
                layer.bias.add_(1)
            kept[step] = layer.bias.data.numpy()  # here
        """,
    ),
    "an optimizer of a copied model": (
        "TS107",
        """
        model = nn.Linear(3, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model = copy.deepcopy(model)  # here
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        """,
    ),
    "a state assigned after the optimizer": (
        "TS107",
        """
        model = nn.Linear(3, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.load_state_dict(copy.deepcopy(model.state_dict()), assign=True)  # here
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        """,
    ),
    "a flat buffer converted": (
        "TS107",
        """
        class Flat(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("flat", torch.zeros(6))
                self.weight = nn.Parameter(self.flat[:3])

        model = Flat().double()  # here
        model.flat.add_(1)
        """,
    ),
    "a second name for a buffer": (
        "TS107",
        """
        class Counter(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", torch.zeros(1))
                self.ticks = self.count  # here

            def tick(self):
                self.ticks += 1

        counter = Counter()
        counter.double()
        counter.tick()
        """,
    ),
    "one buffer sent again and again": (
        "TS108",
        """
        import multiprocessing
        queue = multiprocessing.get_context("fork").SimpleQueue()
        frame = torch.zeros(3)
        for step in range(2):
            frame.fill_(step)  # here
            queue.put(frame)
        """,
    ),
    "a state saved behind the program's back": (
        "TS109",
        """
        import io, threading
        ready, model = threading.Event(), nn.Linear(2, 1)

        def save(state):
            ready.wait()
            torch.save(state, io.BytesIO())

        thread = threading.Thread(target=save, args=(model.state_dict(),))
        thread.start()  # here
        with torch.no_grad():
            model.weight.add_(1.0)
        ready.set()
        thread.join()
        """,
    ),
    "a list of one name": (
        "TS103",
        """
        state = torch.zeros(2)
        states = [state for _ in range(3)]  # here
        for index in range(3):
            states[index] += index
        """,
    ),
    "one tensor repeated": (
        "TS103",
        """
        import itertools
        slots = list(itertools.repeat(torch.zeros(2), 3))  # here
        for index, slot in enumerate(slots):
            slot.fill_(index)
        """,
    ),
    "a tie by data, lost by a conversion": (
        "TS107",
        """
        model = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        model[1].weight.data = model[0].weight.data
        model.double()  # here
        with torch.no_grad():
            model[0].weight.add_(1.0)
        """,
    ),
    "each epoch's state handed to a slow saver": (
        "TS109",
        """
        import io
        import threading
        from concurrent.futures import ThreadPoolExecutor
        model, ready = nn.Linear(2, 1), threading.Event()
        def save(state):
            ready.wait()
            torch.save(state, io.BytesIO())
        with ThreadPoolExecutor(1) as pool:
            for epoch in range(2):
                with torch.no_grad():
                    model.weight.add_(1.0)
                pool.submit(save, model.state_dict())  # here
            ready.set()
        """,
    ),
}

GOOD = {
    "lists of one name that are not written, or of the loop's own name": """
        state = torch.zeros(2)
        states = [state for _ in range(3)]
        parts = [part for part in torch.zeros(3, 2)]
        for index in range(3):
            states[index] = states[index] + index
            parts[index] += index
        """,
    "a state that another thread looks at, and a copy that it saves": """
        import io
        from concurrent.futures import ThreadPoolExecutor
        model = nn.Linear(2, 1)
        with ThreadPoolExecutor(1) as pool:
            for epoch in range(3):
                pool.submit(len, model.state_dict()).result()
                with torch.no_grad():
                    model.weight.add_(1.0)
                pool.submit(torch.save, model.state_dict(), io.BytesIO()).result()
        """,
    "what does not overlap, and one value for all": """
        x = torch.arange(12.0).view(3, 4)
        x[:, 1:] = x[:, :-1].clone()
        x[:, :2] = x[:, 2:]
        x[:, ::2] = x[:, 1::2]
        x[:, 0] += x[:, 1]
        x[:, :3] -= x[:, 3:]
        x.mul_(x)
        signal = torch.arange(10.0)
        signal.unfold(0, 4, 2).zero_()
        windows = signal.unfold(0, 5, 5)
        windows -= windows.mean(1, keepdim=True)
        """,
    "repeated and only read, or made one by one": """
        states = [torch.zeros(2)] * 3
        states[0] = states[0] + 1
        own = [torch.zeros(2) for _ in range(3)]
        for index in range(3):
            own[index] += index
        act = nn.ReLU()
        net = nn.Sequential(nn.Linear(2, 2), act, nn.Linear(2, 2), act)
        """,
    "an environment that reuses its array, rightly used": """
        class Env:
            def __init__(self):
                self.obs = np.zeros(3, dtype=np.float32)

            def step(self, action):
                self.obs += 1
                return self.obs

        env, kept = Env(), []
        obs = env.obs
        for step in range(5):
            action = torch.from_numpy(obs).sum().item()
            kept.append(torch.tensor(obs))
            new = env.step(action)
            obs = new
        """,
    "arrays that are replaced, copied or only read": """
        layer, kept, latest = nn.Linear(3, 3), [], {}
        for step in range(5):
            with torch.no_grad():
                layer.bias.add_(1)
            latest["bias"] = layer.bias.detach().numpy()
            kept.append(layer.bias.detach().numpy().copy())
            kept.append(layer.bias.detach().numpy().mean())
            all_of_it = [value.numpy() for value in layer.state_dict().values()]
        """,
    "an array decayed in place through a tensor": """
        weights = np.ones(4, dtype=np.float32)
        for step in range(3):
            view = torch.as_tensor(weights)
            view.mul_(0.5).add_(torch.ones(4) * step)
            total = view.sum()
        """,
    "ties that hold": """
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.emb, self.out = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
                self.out.weight = self.emb.weight
                self.register_buffer("scale", torch.ones(4))

            def forward(self, tokens):
                return self.out(self.emb(tokens) * self.scale)

        model = Tied()
        both = {"out.weight": torch.ones(6, 4), "emb.weight": torch.ones(6, 4)}
        model.load_state_dict(Tied().state_dict() | both)
        twin = copy.deepcopy(model).double()
        twin.scale.add_(1)
        frozen = nn.Parameter(torch.zeros(3))
        optimizer = torch.optim.SGD([*model.parameters(), frozen], lr=0.1)
        model(torch.tensor([1, 2])).sum().backward()
        optimizer.step()
        """,
    "a save of a copy, and one that is waited for": """
        import io
        from concurrent.futures import ThreadPoolExecutor
        model = nn.Linear(2, 1)
        with ThreadPoolExecutor(1) as pool:
            for step in range(3):
                copied = pool.submit(torch.save, copy.deepcopy(model.state_dict()), io.BytesIO())
                with torch.no_grad():
                    model.weight.add_(1.0)
                live = pool.submit(torch.save, model.state_dict(), io.BytesIO())
                live.result()
        """,
    "different tensors through a queue": """
        import multiprocessing
        queue = multiprocessing.get_context("fork").SimpleQueue()
        for step in range(2):
            frame = torch.zeros(3)
            frame.fill_(step)
            queue.put(frame)
        """,
}


@pytest.mark.parametrize("name", BAD)
def test_the_line_is_named(name: str, tmp_path: Path) -> None:
    code, text = BAD[name]
    record = watch(text, tmp_path)
    assert [line for line in lines(record, code) if "# here" in line]
    assert len(loud(record)) == 1, [(f.code, f.at.line, f.message) for f in loud(record)]


@pytest.mark.parametrize("name", GOOD)
def test_what_is_meant_is_silent(name: str, tmp_path: Path) -> None:
    assert [(f.code, f.at.line, f.message) for f in loud(watch(GOOD[name], tmp_path))] == []
