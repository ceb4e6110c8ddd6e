"""Correct code of shared memory on which tensafe spoke at first sight, and the fault beside it."""

from __future__ import annotations

PAIRS = {
    "a model that nobody trains is put back as it was": (
        """
class Explainer:
    def explain(self, inputs):
        self.original = self.model.state_dict()
        for layer in self.layers:
            layer.weight.data = layer.weight.data.clamp(min=0)
        relevance = self.relevance(inputs)
        self.restore()
        return relevance
    def restore(self):
        self.model.load_state_dict(self.original)
""",
        """
class Trainer:
    def keep(self):
        self.original = self.model.state_dict()  # finds TS102
    def fit(self, batches):
        for batch in batches:
            self.optimizer.step()
    def restore(self):
        self.model.load_state_dict(self.original)
""",
    ),
    "a copy that is trained beside its original": (
        """
def pair():
    ours = nn.Linear(2, 2)
    return ours, copy.deepcopy(ours)
def compare(x):
    ours, theirs = pair()
    first = torch.optim.SGD(ours.parameters(), 0.1)
    second = torch.optim.SGD(theirs.parameters(), 0.1)
    for _ in range(2):
        a, b = ours(x).sum(), theirs(x).sum()
        a.backward()
        b.backward()
        first.step()
        second.step()
""",
        """
def pair():
    ours = nn.Linear(2, 2)
    return ours, copy.deepcopy(ours)
def compare(x):
    ours, theirs = pair()
    first = torch.optim.SGD(ours.parameters(), 0.1)  # finds TS107
    for _ in range(2):
        b = theirs(x).sum()
        b.backward()
        first.step()
""",
    ),
    "a state that is loaded into the model it lives in": (
        """
def search(module: nn.Module, layers, ratios):
    original = {k: v.cpu() for k, v in module.state_dict().items()}
    for ratio in ratios:
        for layer in layers:
            layer.weight.data = layer.weight.data * ratio
        module.load_state_dict(original)
""",
        """
def search(module: nn.Module, batches):
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    original = {k: v for k, v in module.state_dict().items()}  # finds TS102
    for batch in batches:
        module(batch).sum().backward()
        optimizer.step()
    module.load_state_dict(original)
""",
    ),
    "a stand-in for a shape": (
        """
def stand_in(module: nn.Module, shape):
    module.weight = nn.Parameter(torch.empty(()).expand(shape))
""",
        """
def stand_in(module: nn.Module, shape):
    module.weight = nn.Parameter(torch.ones(()).expand(shape))  # finds TS104
""",
    ),
    "a tensor that is made of a tensor by its type": (
        """
pad = torch.Tensor(torch.zeros(2, 3)).type(torch.float64)
""",
        """
pad = torch.tensor(torch.zeros(2, 3)).type(torch.float64)  # finds TS301
""",
    ),
    "a written view that is put back under the name of the whole": (
        """
def weights(target: torch.Tensor):
    found = 1.0 / target.sum(2)
    flat = found.flatten()
    flat[torch.isinf(flat)] = 0
    most = found.max()
    found = flat.reshape(target.shape[:2])
    return found / most
""",
        """
def weights(target: torch.Tensor):
    found = 1.0 / target.sum(2)
    flat = found.flatten()
    flat[torch.isinf(flat)] = 0  # finds TS101
    most = found.max()
    return flat.reshape(target.shape[:2]) / most, found
""",
    ),
    "a cast that had to copy where the old name is read": (
        """
def convert(boxes, inplace: bool):
    original = boxes
    whole = not boxes.is_floating_point()
    if whole:
        boxes = boxes.float()
    elif not inplace:
        boxes = boxes.clone()
    boxes[..., :2].sub_(boxes[..., 2:] / 2)
    if whole:
        original[:] = boxes
        return original
    return boxes
""",
        """
def convert(boxes: torch.Tensor):
    original = boxes  # finds TS101
    for _ in range(2):
        boxes.sub_(boxes / 2)
    return boxes, original
""",
    ),
    "places that are ruled out before the best are taken": (
        """
def route(x: torch.Tensor, mask: torch.Tensor):
    scores = x.sigmoid()
    original = scores
    scores.masked_fill_(mask, float("-inf"))
    best = scores.topk(2)[1]
    return original.gather(1, best), best
""",
        """
def route(x: torch.Tensor, mask: torch.Tensor):
    scores = x.sigmoid()
    original = scores  # finds TS101
    scores.masked_fill_(mask, float("-inf"))
    best = scores.topk(2)[1]
    return original.sum(1), best
""",
    ),
    "a write and a read in two arms of one question": (
        """
def losses(policy: torch.Tensor, value: torch.Tensor, config):
    total = policy.mean()
    policy_loss = total
    if not config["separate"]:
        total += value
    if config["separate"]:
        return policy_loss, value
    return total
""",
        """
def losses(policy: torch.Tensor, value: torch.Tensor, config):
    total = policy.mean()
    policy_loss = total  # finds TS101
    if not config["separate"]:
        total += value
    return policy_loss, total
""",
    ),
}
