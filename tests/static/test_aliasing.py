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
    "copied_dict_of_the_same_tensors": """
def augment(rows):
    sample = {"image": torch.stack(rows), "label": 1}
    other = dict(sample)
    other["image"] *= 2  # finds TS101
    return sample, other
""",
    "copied_dict_with_new_tensors": """
def augment(rows):
    sample = {"image": torch.stack(rows), "label": 1}
    other, third = sample.copy(), copy.deepcopy(sample)
    other["image"] = other["image"] * 2
    other["image"] *= 2
    third["image"] *= 2
    return sample, other, third
""",
    "copied_object_of_its_own_class": """
class Data:
    def subgraph(self, masks):
        data = copy.copy(self)
        for kind, mask in masks.items():
            for key, value in self[kind].items():
                data[kind][key] = value[mask.bool()]
                print(self[kind])
        return data
""",
    "forward_writes_its_input": """
class Position(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(4))

    def forward(self, x):
        x += self.table  # finds TS101
        return x

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.position, self.fc = Position(), nn.Linear(4, 4)

    def forward(self, x):
        h = self.fc(x)
        moved = self.position(h)
        h.mul_(1.0)
        return moved + h

    def right(self, x):
        h = self.fc(x)
        h = self.position(h)
        return h * 2
""",
    "scratch_memory_of_the_result": """
def normalised(rows):
    x = torch.stack(rows)
    out = torch.empty_like(x)
    squares = out
    torch.pow(x, 2, out=squares)
    scale = squares.sum()
    torch.pow(scale, -0.5, out=out)
    out.mul_(x)
    return out
""",
    "named_as_in_place": """
def shift_(boxes):
    boxes[:, 2:] -= boxes[:, :2]
    return boxes.sum()

def normalise(boxes):
    \"\"\"Works in-place and returns the largest size.\"\"\"
    boxes[:, 2:] -= boxes[:, :2]
    return boxes.max()

anchors = torch.rand(3, 4)
shift_(anchors)
largest = normalise(anchors)
print(anchors.sum(), largest)
""",
    "default_is_one_for_all_calls": """
def integrate(steps, state=torch.zeros(2)):
    for step in steps:
        state.mul_(0.5).add_(step)  # finds TS101
    return state.clone()
""",
    "default_is_replaced_first": """
def integrate(steps, state=torch.zeros(2), _scratch=torch.zeros(2)):
    state = state.clone()
    for step in steps:
        state.mul_(0.5).add_(step)
        _scratch.copy_(state)
    return state
""",
    "buffer_converted_without_a_copy": """
class Attention(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("bias", torch.zeros(n, n))

    def forward(self, q, pad):
        mask = self.bias.to(q.dtype)
        mask[:, pad] = float("-inf")  # finds TS101
        return (q + mask).softmax(-1)
""",
    "expanded_and_made_contiguous": """
class Mean(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("constant", torch.zeros(n))

    def forward(self, x):
        mean = self.constant.unsqueeze(-1).expand(3, x.size(-1)).contiguous()
        mean[..., 1:] = 0
        return mean + x
""",
    "skip_of_an_in_place_layer": """
class Unit(nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.fc = nn.ReLU(inplace=True), nn.Linear(2, 2)

    def forward(self, x):
        out = self.act(x)  # finds TS101
        return self.fc(out) + x
""",
    "layer_overwrites_its_own_name": """
class Unit(nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.fc = nn.ReLU(inplace=True), nn.Linear(2, 2)

    def forward(self, x):
        skip = x
        x = self.fc(x)
        x = self.act(x)
        return x + skip
""",
    "collected_before_the_layer": """
class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))

    def forward(self, x):
        found = []
        for layer in self.layers:
            x = layer(x)
            found.append(x)  # finds TS101
        return found
""",
    "path_of_one_tensor": """
def simulate(steps):
    x, path = torch.zeros(2), []
    for _ in range(steps):
        x += 0.1
        path.append(x)  # finds TS101
    return torch.stack(path)
""",
    "items_of_one_tensor": """
def prepare(rows):
    masks, found = torch.stack(rows), []
    for mask in masks:
        mask[0] = 1
        found.append(mask)
    return torch.stack(found)
""",
    "hook_keeps_the_output": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.act = nn.Linear(2, 2), nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.fc(x))

kept = []

def keep(module, args, output):
    kept.append(output)  # finds TS101

net = Net()
net.fc.register_forward_hook(keep)
with torch.no_grad():
    net(torch.rand(1, 2))
""",
    "dataset_changes_what_it_holds": """
class Images(torch.utils.data.Dataset):
    def __init__(self):
        self.images = [torch.rand(2, 2) for _ in range(3)]

    def __getitem__(self, i):
        image = self.images[i]
        image.mul_(2).sub_(1)  # finds TS101
        return image
""",
    "dataset_fills_its_cache": """
class Images(torch.utils.data.Dataset):
    def __init__(self):
        self.images = torch.zeros(3, 2)

    def __getitem__(self, i):
        row = self.images[i]
        row.copy_(torch.rand(2))
        return row.clone()
""",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    assert found(SNIPPETS[name]) == expected(SNIPPETS[name])
