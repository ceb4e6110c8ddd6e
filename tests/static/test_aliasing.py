"""Writes through one name that another name, a caller, a dataset or a hook still reads."""

from __future__ import annotations

import pytest

from static.checking import expected, found

SNIPPETS = {
    "labels_are_the_inputs": """
def collate(rows):
    ids = torch.stack(rows)
    labels = ids
    labels[labels == 0] = -100  # finds TS101
    return {"ids": ids, "labels": labels}
""",
    "labels_of_a_batch": """
def prepare(tokenizer, texts):
    batch = tokenizer(texts)
    labels = batch["input_ids"]
    labels[labels == tokenizer.pad_token_id] = -100  # finds TS101
    batch["labels"] = labels
    return batch
""",
    "targets_of_a_batch_are_its_labels": """
def prepare(tokenizer, texts):
    batch = tokenizer(texts)
    labels = batch["labels"]
    labels[labels == 0] = -100
    batch["targets"] = labels
    return batch
""",
    "labels_are_a_clone": """
def collate(rows):
    ids = torch.stack(rows)
    labels = ids.clone()
    labels[labels == 0] = -100
    return {"ids": ids, "labels": labels}
""",
    "one_name_is_read_no_more": """
def scale(rows):
    raw = torch.stack(rows)
    out = raw
    out.mul_(2)
    return out
""",
    "a_view_is_written_on_purpose": """
def grow(weights, noise):
    flat = torch.stack(weights)
    row = flat.view(-1)
    row.add_(noise)
    return flat, row.sum()
""",
    "detach_shares": """
def attack(rows, eps):
    image = torch.stack(rows)
    moved = image.detach()
    moved += eps  # finds TS101
    return moved, (moved - image).abs().max()
""",
    "kept_values_change": """
state = torch.zeros(3)
for step in range(3):
    before = state  # finds TS101
    state += 1.0
    print((state - before).abs().sum())
""",
    "best_so_far_is_the_running_one": """
best, w = None, torch.zeros(3)
for i in range(3):
    w += torch.rand(3)
    if best is None or w.sum() > best.sum():
        best = w  # finds TS101
print(best.sum(), w)
""",
    "best_so_far_is_a_new_tensor": """
best, w = None, torch.zeros(3)
for i in range(3):
    w = w + torch.rand(3)
    w += 1.0
    if best is None or w.sum() > best.sum():
        best = w
print(best.sum(), w)
""",
    "roots_from_the_roots_before": """
def roots(n, k, between):
    points, found = np.arange(k + n), np.zeros(k + n)
    for i in range(n):
        for j in range(k + n - 1 - i):
            found[j] = between(points[j], points[j + 1])
        points = found
    return points, found
""",
    "kept_part_lies_apart": """
def split(rows):
    x = torch.stack(rows)
    tail = x[:, -1:]
    x[:, :1] += 1
    return x.sum(), tail
""",
    "the_same_unless_told_otherwise": """
def steps(t, r, first):
    now = torch.stack(t).repeat(1, 2)
    if r is not None:
        then = torch.stack(r).repeat(1, 2)
    else:
        then = now
    now[:, :first] = 0
    return now, then
""",
    "a_gathered_part_is_a_copy": """
def compact(logits, keep):
    out = torch.zeros(3, 4)
    rows = out[keep]
    kept = rows
    rows.mul_(2)
    out[:2] = kept
    return out, kept, rows
""",
    "bound_anew_before_it_is_read": """
def blend(pairs):
    total = torch.zeros(2)
    for a, b in pairs:
        if a is not None:
            mixed = torch.zeros(2) + b
            out = mixed
            torch.round(out, out=out)
            total += out
    return total
""",
    "items_of_an_array_may_be_numbers": """
def consume(sizes):
    found = []
    for size in np.array(sizes):
        whole = size
        while size > 3:
            size -= 3
        found.append((whole, size))
    return found
""",
    "caller_reads_its_boxes": """
def centres(boxes):
    boxes[:, 2:] -= boxes[:, :2]  # finds TS101
    return boxes[:, :2] + boxes[:, 2:] / 2

anchors = torch.rand(3, 4)
middle = centres(anchors)
print(anchors.sum())
""",
    "caller_reads_its_scores": """
def pick(scores, banned):
    scores[:, banned] = float("-inf")  # finds TS101
    return scores.argmax(-1)

def decode(rows):
    scores = torch.stack(rows)
    tokens = pick(scores, [0, 1])
    scores += 0.0
    return tokens, scores.softmax(-1)
""",
    "a_masked_part_of_the_argument": """
def align(scores, valid, banned):
    chosen = scores[valid]
    chosen[:, banned] = float("-inf")
    return chosen.argmax(-1)

def decode(rows, valid):
    scores = torch.stack(rows)
    tokens = align(scores, valid, [0, 1])
    scores += 0.0
    return tokens, scores.softmax(-1)
""",
    "states_that_are_no_cache": """
class Router(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.training and self.noise > 0:
            hidden_states *= torch.empty_like(hidden_states).uniform_(0.9, 1.1)  # finds TS101
        return (self.scores, self.chosen)
class Dense(nn.Module):
    def __init__(self, config):
        self.fc = nn.Linear(config.d, config.d)
    def forward(self, hidden_states):
        hidden_states = self.fc(hidden_states)
class Sparse(nn.Module):
    def __init__(self, config):
        self.router = Router(config)
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        scores, chosen = self.router(hidden_states)
        return hidden_states
class Layer(nn.Module):
    def __init__(self, config, is_sparse=False):
        if not self.is_sparse:
            self.mlp = Dense(config)
        else:
            self.mlp = Sparse(config)
        self.dropout = nn.Dropout(config.rate)
    def forward(self, hidden_states, **kwargs):
        states = self.norm(hidden_states)
        states = self.mlp(states)
""",
    "caller_gave_a_private_tensor": """
def centres(boxes):
    boxes[:, 2:] -= boxes[:, :2]
    return boxes[:, :2] + boxes[:, 2:] / 2

anchors = torch.rand(3, 4)
middle = centres(anchors.clone())
again = centres(torch.stack([anchors[0], anchors[1]]))
print(anchors.sum())
""",
    "parts_in_turn": """
def scaled(weight, factor):
    weight = weight.to(torch.float32)
    weight.mul_(factor)
    return weight

def total_of(rows, n):
    weight, total = torch.stack(rows), 0
    for i in range(n):
        total += scaled(weight[i], 2.0)
    return total
""",
    "made_to_be_filled": """
def mark(mask, rows):
    mask[rows, :] = 1
    return int(mask.sum())

mask = torch.zeros(4, 4)
count = mark(mask, [1, 2])
print(mask.sum(), count)
""",
    "indices_become_floats": """
def grid(rows):
    edge_indices = torch.stack(rows)
    place = edge_indices.float()
    place[..., 0] = place[..., 0] / 2
    return place, edge_indices
""",
    "data_of_each_epoch": """
data = [torch.rand(3) for _ in range(4)]
for epoch in range(2):
    for x in data:
        x.sub_(x.mean()).div_(x.std())  # finds TS101
        print(x.abs().max())
""",
    "parameters_in_each_step": """
params = [torch.zeros(2, requires_grad=True), torch.zeros(3, requires_grad=True)]
speeds = [torch.zeros(2), torch.zeros(3)]
for step in range(3):
    sum(p.sum() for p in params).backward()
    with torch.no_grad():
        for p in params:
            p -= 0.1 * p.grad
            p.grad = None
    for v in speeds:
        v.mul_(0.9)
        print(v.sum())
""",
    "data_made_in_each_epoch": """
for epoch in range(2):
    data = [torch.rand(3) for _ in range(4)]
    for x in data:
        x.sub_(x.mean()).div_(x.std())
        print(x.abs().max())
""",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    assert found(SNIPPETS[name]) == expected(SNIPPETS[name])
