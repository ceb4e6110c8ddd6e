"""Writes through one name that another name reads: what is told, and what is plainly meant."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from runtime.watching import lines, loud, watch

BAD = {
    "an item of a dataset is normalised in place": """
        class Items(torch.utils.data.Dataset):
            def __init__(self):
                self.items = [torch.rand(3) for _ in range(3)]

            def __len__(self):
                return 3

            def __getitem__(self, index):
                item = self.items[index]
                item -= item.mean()  # TS101
                return item

        total = sum(Items())
        """,
    "a transform erases a part of a stored image": """
        def erase(image):
            image[:, 0:1] = 0.0  # TS101
            return image

        class Images(torch.utils.data.Dataset):
            def __init__(self):
                self.images = torch.ones(2, 3, 3)

            def __getitem__(self, index):
                return erase(self.images[index])

        image = Images()[0]
        """,
    "float() had nothing to copy": """
        def scaled(image):
            image = image.float()
            image.div_(255)  # TS101
            return image

        raw = torch.rand(2, 3)
        first = scaled(raw)
        second = scaled(raw)
        """,
    "labels are remapped in the loss and counted afterwards": """
        def loss_of(prediction, labels):
            labels[labels == 2] = 0  # TS101
            return F.cross_entropy(prediction, labels)

        labels, prediction = torch.tensor([0, 1, 2]), torch.eye(3)
        loss = loss_of(prediction, labels)
        accuracy = (prediction.argmax(1) == labels).float().mean()
        """,
    "an older name keeps nothing": """
        def distance(state, change):
            before = state  # TS101
            state += change
            return (state - before).norm()

        moved = distance(torch.zeros(3), torch.ones(3))
        """,
    "a buffer is written through a conversion that did nothing": """
        class Positions(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("table", torch.zeros(3))

            def forward(self, x):
                table = self.table.to(x.dtype)
                table += x.mean()  # TS101
                return x + table

        y = Positions()(torch.ones(3))
        """,
    "an in-place layer inside a block overwrites the skip": """
        class Unit(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = nn.Sequential(nn.ReLU(True), nn.Linear(3, 3))

            def forward(self, x):
                h = self.block(x)  # TS101
                return x + h

        with torch.no_grad():
            y = Unit()(torch.randn(2, 3))
        """,
    "features are collected before the next layer overwrites them": """
        def features(x, layers):
            kept = []
            for layer in layers:
                x = layer(x)
                kept.append(x)  # TS101
            return kept

        with torch.no_grad():
            maps = features(torch.randn(1, 3), nn.ModuleList([nn.Linear(3, 3), nn.ReLU(inplace=True)]))
        """,
    "a method hook collects outputs": """
        class Features:
            def __init__(self, layer):
                self.maps = []
                layer.register_forward_hook(self.keep)

            def keep(self, module, args, output):
                self.maps.append(output)  # TS101

        net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(True))
        kept = Features(net[0])
        with torch.no_grad():
            y = net(torch.randn(2, 3))
        """,
    "the input is kept under another name": """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.act, self.fc = nn.LeakyReLU(inplace=True), nn.Linear(3, 3)

            def forward(self, x):
                identity = x
                x = self.act(x)  # TS101
                return self.fc(x) + identity

        y = Block()(torch.randn(2, 3))
        """,
}

GOOD = {
    "an average is updated and read": """
        def momentum(buffer, gradient):
            buffer.mul_(0.9).add_(gradient)
            return buffer.norm()

        buffer = torch.zeros(3)
        norms = [momentum(buffer, torch.ones(3)) for _ in range(3)]
        total = buffer.sum()
        """,
    "a function that says so": '''
        def clip_boxes(boxes, size):
            """Clips in place."""
            boxes[:, 0].clamp_(0, size)
            return boxes.sum()

        def scale_(boxes):
            boxes.mul_(2)
            return boxes.sum()

        boxes = torch.rand(3, 4)
        a = clip_boxes(boxes, 1)
        b = scale_(boxes)
        total = boxes.sum()
        ''',
    "a view is written to fill the whole": """
        mask = torch.zeros(4, 4)
        flat = mask.reshape(-1)
        flat[::5] = 1
        trace = mask.diagonal().sum()
        """,
    "weights are kept in bounds through .data": """
        layer = nn.Linear(3, 3)
        weight = layer.weight.data
        weight.div_(weight.norm(dim=1, keepdim=True))
        norm = weight.norm()
        y = layer(torch.ones(1, 3))
        """,
    "a cache is filled through a local name": """
        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("keys", torch.zeros(8, 3))

            def forward(self, key, position):
                keys = self.keys
                keys[position : position + 1] = key
                return keys[: position + 1]

        attention = Attention()
        seen = [attention(torch.ones(1, 3), position) for position in range(3)]
        """,
    "a dataset counts what it gives, and fills a cache": """
        class Items(torch.utils.data.Dataset):
            def __init__(self):
                self.items, self.seen, self.cache = torch.rand(3, 2), torch.zeros(3), torch.zeros(3, 2)

            def __len__(self):
                return 3

            def __getitem__(self, index):
                seen = self.seen
                seen[index] += 1
                row = self.cache[index]
                row[:] = self.items[index] * 2
                item = self.items[index].clone()
                item.sub_(item.mean())
                return item + row

        total = sum(Items())
        """,
    "layers that work in place on what nobody reads": """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.act = nn.Linear(3, 3), nn.Linear(3, 3), nn.ReLU(inplace=True)
                self.drop = nn.Dropout(0.5, inplace=True)

            def forward(self, x):
                identity = x
                out = self.act(self.a(x))
                out = self.b(out)
                out += identity
                return self.act(out)

        maps, x = [], torch.randn(2, 3)
        block = nn.ModuleList([Block(), Block()])
        for layer in block:
            x = layer(x)
            maps.append(x)
        drop = nn.Dropout(0.5, inplace=True).eval()
        y = drop(x)
        total = y.sum() + x.sum()
        """,
    "a hook that copies": """
        maps = {}
        net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(True))
        net[0].register_forward_hook(lambda module, args, output: maps.update(first=output.clone()))
        net[1].register_forward_hook(lambda module, args, output: maps.update(second=output))
        y = net(torch.randn(2, 3))
        """,
    "an activation of what is positive already, or of a tensor of its own": """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.act, self.fc = nn.ReLU(inplace=True), nn.Linear(3, 3)

            def forward(self, x):
                identity = x
                x = self.act(x)
                out = self.act(self.fc(x))
                return self.act(out + identity)

        x = torch.randn(2, 3, requires_grad=True).relu()
        y = Block()(Block()(x))
        """,
}


@pytest.mark.parametrize("name", BAD)
def test_the_line_is_named(name: str, tmp_path: Path) -> None:
    record = watch(BAD[name], tmp_path)
    told = [line for line in lines(record, "TS101") if "# TS101" in line]
    assert len(told) == 1
    assert len(loud(record)) == 1


@pytest.mark.parametrize("name", GOOD)
def test_what_is_meant_is_silent(name: str, tmp_path: Path) -> None:
    assert [(f.code, f.at.line, f.message) for f in loud(watch(GOOD[name], tmp_path))] == []


def test_nothing_that_a_frame_held_stays_alive(tmp_path: Path) -> None:
    code = """
        import weakref

        def work(x):
            large = torch.zeros(10)
            other = x
            other.add_(1)
            gone = weakref.ref(large)
            del large
            return gone() is None

        freed = [work(torch.zeros(3)) for _ in range(3)]
        assert all(freed)
        """
    assert not watch(code, tmp_path).summary.get("raised")
    gc.collect()


def test_the_dictionary_of_locals_stays_the_programs(tmp_path: Path) -> None:
    code = """
        def work(x):
            known = locals()
            y = x
            y.add_(1)
            return known

        assert set(work(torch.zeros(3))) >= {"x"}
        """
    assert not watch(code, tmp_path).summary.get("raised")
