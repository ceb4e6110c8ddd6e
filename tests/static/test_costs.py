"""Copies, saves and views that cost more than they give, in source."""

from __future__ import annotations

import pytest

from static.checking import HEAD, expected, found
from tensafe.check import check_text
from tensafe.findings import Severity
from tensafe.rules._loader import select

SNIPPETS = {
    "copy_of_a_gather": """
table = torch.rand(9, 4)
rows = torch.tensor([0, 2])
def pick(keep: torch.Tensor):
    whole = table[rows].clone()  # finds TS301
    part = table[:4].clone()
    return whole, part, torch.cat([part, part]).detach().clone()  # finds TS301
""",
    "copy_of_what_autograd_keeps": """
def damped(x: torch.Tensor):
    x = x.requires_grad_()
    gate = x.sigmoid().clone()
    gate.mul_(2)
    return gate.sum()
""",
    "copy_on_the_next_line": """
def collate(images):
    batch = torch.cat(images)
    batch = batch.clone()  # finds TS301
    return batch
def keep(images):
    batch = torch.cat(images)
    twin = batch.clone()
    return batch.mul_(2), twin
""",
    "copy_of_a_leaf_or_a_layout": """
start = torch.zeros(3, requires_grad=True).clone()
numbers = torch.arange(9).long().clone()
last = torch.stack([torch.ones(2, 3), torch.ones(2, 3)]).clone(memory_format=torch.contiguous_format)
""",
    "copy_that_lets_memory_go": """
tail = torch.cat([torch.rand(1000, 8), torch.rand(1000, 8)])[-1].clone()
""",
    "copies_of_arrays": """
def convert(values, image):
    first = torch.tensor(np.array(values).copy())  # finds TS301
    points = np.array([values, values]).T.copy()
    return first, torch.tensor(image[::-1].copy()), torch.from_numpy(np.flip(image, 0).copy()), points
""",
    "a_copy_that_is_only_read": """
net = nn.Linear(4, 2)
data = torch.rand(3, 8, 4)
total = 0.0
for batch in data:
    x = batch.clone()  # finds TS301
    total += net(x).mean().item()
def changed(batch: torch.Tensor):
    before = batch.detach().clone()
    batch.relu_()
    return (batch - before).sum()
def handed_on(batch: torch.Tensor, model):
    x = batch.detach().clone()
    return model(x).sum()
def through_an_alias(batch: torch.Tensor):
    rows = batch[0]
    x = batch.detach().clone()
    rows += 1
    return x.sum()
""",
    "the_same_copy_in_each_round": """
grid = torch.rand(8, 4, 2).permute(2, 0, 1)
for step in range(10):
    row = grid.contiguous()[0] * step  # finds TS302
for step in range(10):
    fresh = torch.rand(8, 4).t().contiguous()
moving = torch.rand(8, 4).t()
for step in range(10):
    moving.add_(1)
    total = moving.reshape(-1).sum()
""",
    "kept_part_of_a_helper": """
def last_row(steps):
    alpha = torch.zeros(steps, 4096)
    for t in range(1, steps):
        alpha[t] = alpha[t - 1] + 1
    return alpha[-1]  # finds TS303
ends = [last_row(500) for _ in range(3)]
""",
    "kept_parts_that_are_held_anyway": """
hidden = torch.zeros(500, 4096)
rows = [hidden[i] for i in range(500)]
heads, tails, wholes = [], [], []
for _ in range(3):
    step = torch.zeros(500, 4096)
    heads.append(step[:1])
    tails.append(step[1:])
for _ in range(3):
    other = torch.zeros(500, 4096)
    wholes.append(other)
    heads.append(other[:1])
""",
    "kept_copy": """
kept = []
for _ in range(3):
    step = torch.zeros(500, 4096)
    kept.append(step[0].clone())
""",
    "each_item_in_a_file_of_its_own": """
def dump(batch: torch.Tensor, names):
    batch = batch.detach()
    for name, item in zip(names, batch):
        torch.save(item, name)  # finds TS304
    for number in range(3):
        torch.save({"x": batch[number]}, f"{number}.pt")  # finds TS304
        torch.save(batch[number].clone(), f"{number}.pt")
    torch.save(batch, "all.pt")
""",
    "all_items_in_one_file": """
def dump(batch: torch.Tensor, path):
    batch = batch.detach()
    torch.save([item for item in batch], path)
    rows = {}
    for number, row in enumerate(batch):
        rows[number] = row
    torch.save(rows, path)
    first, second = batch.chunk(2)
    torch.save({"first": first, "second": second}, path)
""",
    "a_shard_for_each_rank": """
def shards(state, count):
    made = [{} for _ in range(count)]
    for name, weight in state.items():
        for shard, piece in zip(made, torch.chunk(weight, count)):
            shard[name] = piece
    return made
for rank, shard in enumerate(shards({"w": torch.rand(8, 8)}, 2)):
    torch.save(shard, f"{rank}.pt")  # finds TS304
""",
    "heads_merged_by_view": """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(8, 8)
    def forward(self, x):
        b, t, c = x.shape
        q = self.query(x).view(b, t, 2, 4).transpose(1, 2)
        return q.view(b, t, c)  # finds TS307
model = Attention()
model(torch.rand(2, 3, 8))
x = torch.rand(2, 3, 2, 4).transpose(1, 2)
merged = x.view(2, 3, 8)  # finds TS307
split = torch.rand(3, 2, 8).transpose(0, 1).view(2, 3, 2, 4)
right = x.transpose(1, 2).view(2, 3, 8)
also = x.contiguous().view(2, 2, 12)
""",
    "heads_merged_after_a_product": """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.value = nn.Linear(8, 8), nn.Linear(8, 8)
    def forward(self, x, mask):
        b, t, c = x.shape
        q = self.query(x).view(b, t, 2, 4).transpose(1, 2)
        v = self.value(x).view(b, t, 2, 4).transpose(1, 2)
        weights = (q @ q.transpose(-2, -1) * 0.5).masked_fill(mask == 0, -1e9).softmax(-1)
        if self.training:
            return (weights @ v).transpose(1, 2).contiguous().view(b, t, c)
        return (weights @ v).transpose(1, 2).view(b, t, c)  # finds TS307
""",
    "views_that_strides_allow": """
image = torch.rand(2, 3, 4, 4)
pixels = image.permute(0, 2, 3, 1).view(2, 16, 3)
rows = image[:, 1:].view(2, 2, 16)
pooled = F.adaptive_avg_pool2d(image.to(memory_format=torch.channels_last), 1).view(2, 3)
single = torch.rand(5, 1).t().view(5)
wide = torch.rand(3, 4)[1:].view(-1)
""",
    "a_refusal_that_is_expected": """
x = torch.rand(2, 3).t()
try:
    flat = x.view(-1)
except RuntimeError:
    flat = x.reshape(-1)
""",
    "output_of_a_recurrent_layer": """
rnn = nn.GRU(3, 4, batch_first=True)
states, last = rnn(torch.rand(2, 5, 3))
flat = states.view(-1, 4)  # finds TS307
early = nn.GRU(3, 4)
states, last = early(torch.rand(5, 2, 3))
flat = states.view(-1, 4)
""",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_what_the_marks_say_is_found(name: str) -> None:
    assert found(SNIPPETS[name]) == expected(SNIPPETS[name])


def notices(snippet: str) -> list[tuple[int, str]]:
    findings = check_text(HEAD + snippet, "snippet.py", select())
    quiet = [one for one in findings if one.severity is Severity.NOTICE]
    return sorted((one.at.line - HEAD.count("\n"), one.code) for one in quiet)


def test_a_part_of_a_size_that_is_not_known_is_a_notice() -> None:
    snippet = """
@torch.no_grad()
def features(model, loader):
    model = nn.Linear(4, 4)
    kept = []
    for images in loader:
        hidden = model(images)
        kept.append(hidden[:, 0])
    torch.save(hidden[:2], "few.pt")
    return kept
"""
    assert notices(snippet) == [(8, "TS303"), (9, "TS304")]


def test_what_pytorch_advises_is_a_notice() -> None:
    assert notices("batch = torch.tensor(np.array([1.0, 2.0]))\n") == [(1, "TS301")]


def test_a_clone_is_left_out_safely_where_no_other_call_can_need_it() -> None:
    snippet = """
table = torch.rand(9, 4)
def pick(rows):
    return table[rows].clone()
picked = pick(torch.tensor([0, 2]))
weak = table[table > 0.5].clone()
"""
    found = check_text(HEAD + snippet, "snippet.py", select(["TS301"]))
    assert [one.fix is not None and one.fix.safe for one in found] == [False, True]
