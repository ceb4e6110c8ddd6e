"""Writes into what a copied container, an object, a default argument or a hook keeps."""

from __future__ import annotations

import pytest

from static.checking import expected, found

SNIPPETS = {
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
    "one_name_for_what_may_be_converted": """
def reduce(self, rows):
    flat = torch.cat(rows).view(-1)
    sent = flat
    if self.wide:
        sent = flat.float()
    sent.mul_(0.5)
    self.send(sent)
    if self.wide and flat is not sent:
        flat.copy_(sent)
    return flat
""",
    "a_state_under_a_short_name": """
def step(grad: torch.Tensor, beta):
    second = torch.zeros(3)
    nu = second
    nu.mul_(beta).addcmul_(grad, grad)
    return nu.sqrt() + second
""",
    "a_count": """
def run(measure, limit: int, n: int):
    step = min(max(limit // 2, 1), n)
    n_steps = step
    measure(torch.ones(3), step)
    while n_steps < n:
        n_steps += step
        measure(torch.ones(3), step)
    return n_steps
""",
    "parts_of_one_buffer": """
def gather(item, size, rank):
    flat = torch.zeros(size * 4)
    parts = []
    for i in range(4):
        part = flat.narrow(0, size * i, size)
        if i == rank:
            part.copy_(item)
        parts.append(part)
    return flat, parts
""",
    "a_running_product_of_numbers": """
def products(counts):
    sizes = [np.prod(count).astype(int) for count in counts]
    now, seen = 1, [0]
    for i in range(1, len(sizes)):
        now *= sizes[i - 1]
        seen.append(now)
    return seen
""",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    assert found(SNIPPETS[name]) == expected(SNIPPETS[name])
