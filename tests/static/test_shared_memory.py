"""Repeated references, overlapping writes, arrays, ties, workers and savers: who else has the memory."""

from __future__ import annotations

import pytest

from static.checking import expected, found

REPEATS = {
    "slots_of_a_memory": """
class Memory:
    def __init__(self, n):
        self.slots = [torch.zeros(2)] * n  # finds TS103

    def write(self, i, x):
        self.slots[i].add_(x)
""",
    "slots_are_replaced": """
def run(n, x):
    slots = [torch.zeros(2)] * n
    for i in range(n):
        slots[i] = slots[i] + x
    return torch.stack([torch.zeros(2)] * n), slots
""",
    "counts_by_name": """
def count(names, hits):
    table = dict.fromkeys(names, torch.zeros(2))  # finds TS103
    for name in hits:
        table[name] += 1
    return table
""",
    "one_layer_for_all": """
def tower(depth):
    block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return nn.Sequential(*[block for _ in range(depth)])  # finds TS103

def heads(depth):
    head = nn.Linear(4, 4)
    return nn.ModuleList([head for _ in range(depth)])
""",
    "a_module_without_weights": """
def tower(depth):
    return nn.Sequential(*[nn.ReLU()] * depth, *[nn.Linear(4, 4) for _ in range(depth)])
""",
    "slots_without_rows_are_replaced": """
def keep(predictions):
    found = [torch.zeros((0, 6))] * len(predictions)
    for i, rows in enumerate(predictions):
        found[i] = rows[rows[:, 4] > 0.5]
    for rows in found:
        rows[:, :2] /= 2
    return found
""",
    "no_elements_to_write": """
def halve(n):
    found = [torch.zeros((0, 6))] * n
    for rows in found:
        rows[:, :2] /= 2
    return found
""",
    "weights_are_shared_on_purpose": """
def tower(depth):
    return nn.ModuleList([nn.Linear(4, 4)] * depth)  # the layers share their weights
""",
}
OVERLAPS = {
    "shifted_columns": """
class History:
    def __init__(self, n):
        self.frames = torch.zeros(n, 4)

    def push(self, x):
        self.frames[:, 1:] = self.frames[:, :-1]  # finds TS104
        self.frames[:, 0] = x
""",
    "shifted_copies": """
def push(n, x):
    frames = torch.zeros(n, 4)
    frames[:, 1:] = frames[:, :-1].clone()
    frames[:, 2:] = frames[:, :2]
    frames[:, 1:] = frames[:, 1:] - frames[:, :-1]
    return frames
""",
    "numpy_copies_what_overlaps": """
def push(x):
    frames = np.zeros((2, 4))
    frames[:, 1:] = frames[:, :-1]
    return frames
""",
    "lists_copy_their_slices": """
def push(x):
    frames = [torch.zeros(2), torch.zeros(2), x]
    frames[1:] = frames[:-1]
    return frames
""",
    "own_transpose": """
def symmetrise(rows):
    a = torch.stack(rows)
    a += a.transpose(0, 1)  # finds TS104
    return a / 2
""",
    "expanded_rows": """
rows = torch.zeros(1, 3).expand(4, 3)
rows += torch.rand(4, 3)  # finds TS104
""",
    "expanded_by_nothing": """
ids = torch.arange(4).expand((1, -1))
ids += 1
full = torch.zeros(1, 3).expand(4, 3).contiguous()
full += 1
""",
    "parameter_of_expanded_memory": """
class Heads(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(1, d).expand(n, d))  # finds TS104
        self.register_buffer("ids", torch.arange(n).expand((1, -1)))
        self.register_buffer("grid", torch.arange(d).expand(n, d), persistent=False)
""",
    "frozen_parameter_of_expanded_memory": """
class Placeholder(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.slots = nn.Parameter(torch.zeros(()).expand(n), requires_grad=False)
""",
    "result_over_its_input": """
x = torch.arange(6.0)
torch.add(x[:-1], 1.0, out=x[1:])  # finds TS104
torch.add(x[:3], 1.0, out=x[3:])
""",
    "windows_side_by_side": """
signal = torch.arange(12.0)
parts = signal.unfold(0, 4, 4)
parts -= parts.mean(dim=1, keepdim=True)
""",
}
ARRAYS = {
    "weights_over_time": """
layer = nn.Linear(2, 1)
path = []
for _ in range(3):
    path.append(layer.bias.detach().cpu().numpy())  # finds TS105
    with torch.no_grad():
        layer.bias.sub_(0.1)
""",
    "weights_copied_over_time": """
layer = nn.Linear(2, 1)
path = []
for _ in range(3):
    path.append(layer.bias.detach().cpu().numpy().copy())
    with torch.no_grad():
        layer.bias.sub_(0.1)
""",
    "outputs_over_time": """
layer = nn.Linear(2, 1)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
seen = []
for _ in range(3):
    out = layer(torch.rand(1, 2))
    seen.append(out.detach().numpy())
    out.sum().backward()
    optimizer.step()
""",
    "frames_of_a_film": """
def load(film):
    frames = np.array(film)
    found = []
    for frame in frames:
        frame[0] = 0
        found.append(torch.from_numpy(frame))
    return found
""",
    "both_sides_are_read": """
def prepare(raw):
    image = np.asarray(raw, dtype=np.float32)
    t = torch.from_numpy(image)
    t.sub_(t.mean())  # finds TS105
    return t, image.max()
""",
    "a_buffer_seen_from_both_sides": """
def count(rows):
    totals = np.zeros(3, dtype=np.float32)
    view = torch.from_numpy(totals)
    for row in rows:
        view += row
    return totals.max(), view
""",
    "table_of_the_file": """
TABLE = np.arange(6, dtype=np.float32).reshape(2, 3)

def row(i):
    r = torch.from_numpy(TABLE[i])
    return r.div_(r.sum())  # finds TS105
""",
    "dataset_over_an_array": """
class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.x = np.zeros((4, 3), dtype=np.float32)

    def __getitem__(self, i):
        t = torch.from_numpy(self.x[i])
        t.sub_(t.mean())  # finds TS105
        return t
""",
    "refilled_by_its_owner": """
class Env:
    def __init__(self):
        self.obs = np.zeros(2)

    def step(self, action):
        self.obs[0] = action
        return self.obs  # finds TS105

class Loop:
    def __init__(self, env):
        self.env = env
        self.last = env.step(0)

    def run(self, kept):
        new = self.env.step(1)
        kept.append(torch.tensor(self.last))
        self.last = new

Loop(Env()).run([])
""",
}
TIES = {
    "head_replaced_after_the_optimizer": """
def tune(model, classes):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.head = nn.Linear(4, classes)  # finds TS107
    model(torch.rand(1, 4)).sum().backward()
    optimizer.step()
""",
    "optimizer_told_of_the_head": """
def tune(model, classes):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.head = nn.Linear(4, classes)
    optimizer.add_param_group({"params": model.head.parameters()})
    model(torch.rand(1, 4)).sum().backward()
    optimizer.step()

def again(model, classes):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model.head = nn.Linear(4, classes)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.step()
""",
    "copy_is_trained": """
def tune(base):
    optimizer = torch.optim.SGD(base.parameters(), 0.1)  # finds TS107
    model = copy.deepcopy(base)
    model(torch.rand(1, 2)).sum().backward()
    optimizer.step()

tune(nn.Linear(2, 1))
""",
    "optimizer_is_copied_alone": """
model = nn.Linear(2, 1)
worker, optimizer = copy.deepcopy(model), torch.optim.SGD(model.parameters(), 0.1)
own = copy.deepcopy(optimizer)  # finds TS107
worker(torch.rand(1, 2)).sum().backward()
own.step()
""",
    "teacher_is_a_copy": """
def distil(student):
    optimizer = torch.optim.SGD(student.parameters(), 0.1)
    teacher = copy.deepcopy(student)
    x = torch.rand(1, 2)
    (student(x) - teacher(x)).sum().backward()
    optimizer.step()

distil(nn.Linear(2, 1))
""",
    "buffer_under_parameters": """
class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("flat", torch.zeros(6))
        self.tie()

    def tie(self):
        self.weight = nn.Parameter(self.flat[:4].view(2, 2))

average = copy.deepcopy(Flat())  # finds TS107
average.flat.add_(1.0)
other = copy.deepcopy(Flat())
other.tie()
other.flat.add_(1.0)
""",
    "buffers_in_a_table": """
class Meter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("hits", torch.zeros(2))
        self.table = {"hits": self.hits}  # finds TS107

    def update(self, x):
        self.table["hits"].add_(x)

meter = Meter().double()
meter.update(torch.ones(2))
""",
    "buffers_never_converted": """
class Meter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("hits", torch.zeros(2))
        self.table = {"hits": self.hits}

    def update(self, x):
        self.table["hits"].add_(x)
        self.hits.mul_(2)

Meter().update(torch.ones(2))
""",
}
PROCESSES = {
    "cache_in_the_workers": """
class Cached(torch.utils.data.Dataset):
    def __init__(self):
        self.cache = {}

    def __getitem__(self, i):
        if i not in self.cache:
            self.cache[i] = torch.zeros(2)  # finds TS108
        return self.cache[i]

loader = torch.utils.data.DataLoader(Cached(), num_workers=2)
""",
    "cache_in_this_process": """
class Cached(torch.utils.data.Dataset):
    def __init__(self):
        self.cache = {}

    def __getitem__(self, i):
        if i not in self.cache:
            self.cache[i] = torch.zeros(2)
        return self.cache[i]

alone = torch.utils.data.DataLoader(Cached(), num_workers=0)
lasting = torch.utils.data.DataLoader(Cached(), num_workers=2, persistent_workers=True)
""",
    "epoch_of_lasting_workers": """
class Stages(torch.utils.data.Dataset):
    def __init__(self):
        self.stage = 0

    def __getitem__(self, i):
        return torch.zeros(2) + self.stage

data = Stages()
loader = torch.utils.data.DataLoader(data, num_workers=2, persistent_workers=True)
for epoch in range(3):
    data.stage = epoch  # finds TS108
""",
    "written_after_it_was_sent": """
import torch.multiprocessing as mp
queue = mp.Queue()
buffer = torch.zeros(4)
for step in range(3):
    buffer.fill_(step)  # finds TS108
    queue.put(buffer)
    queue.put(buffer.clone())
""",
    "saved_while_it_trains": """
def train(model, data, pool):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x in data:
        model(x).sum().backward()
        optimizer.step()
        pool.submit(torch.save, model.state_dict(), "x.pt")  # finds TS109
""",
    "waits_for_the_save": """
def train(model, data, pool):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x in data:
        model(x).sum().backward()
        optimizer.step()
        pool.submit(torch.save, model.state_dict(), "x.pt").result()
        pool.submit(torch.save, copy.deepcopy(model.state_dict()), "x.pt")
""",
}
SNIPPETS = {**REPEATS, **OVERLAPS, **ARRAYS, **TIES, **PROCESSES}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    assert found(SNIPPETS[name]) == expected(SNIPPETS[name])
