"""Correct code on which tensafe spoke in packages that no rule had been tried on."""

from __future__ import annotations

import pytest

from static.checking import found

CORRECT = {
    "a temperature that is trained by a loss of its own": """
class Agent:
    def set_up(self, auto, start):
        self.actor, self.critic = nn.Linear(4, 2), nn.Linear(6, 1)
        self.optimizer = torch.optim.Adam(self.critic.parameters())
        if isinstance(auto, str):
            self.log_scale = torch.log(torch.ones(1) * start).requires_grad_(True)
            self.scale_optimizer = torch.optim.Adam([self.log_scale])
        else:
            self.scale = torch.tensor(float(auto))
    def train(self, batches):
        for state, action, reward in batches:
            entropy = self.actor(state).sum(1)
            scale_loss = None
            if self.scale_optimizer is not None:
                scale = torch.exp(self.log_scale.detach())
                scale_loss = -(self.log_scale * (entropy + 1).detach()).mean()
            else:
                scale = self.scale
            if scale_loss is not None:
                self.scale_optimizer.zero_grad()
                scale_loss.backward()
                self.scale_optimizer.step()
            with torch.no_grad():
                target = reward + scale * entropy
            loss = F.mse_loss(self.critic(torch.cat([state, action], 1)), target)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
""",
    "layers in a list of which nobody knows the last": """
class Block(nn.Module):
    def __init__(self, a, repeats, stride, first, grow):
        super().__init__()
        layers = []
        if grow:
            layers.append(nn.ReLU(inplace=True))
            layers.append(nn.Conv2d(a, a, 3))
            layers.append(nn.BatchNorm2d(a))
        for _ in range(repeats - 1):
            layers.append(nn.ReLU(inplace=True))
            layers.append(nn.Conv2d(a, a, 3))
            layers.append(nn.BatchNorm2d(a))
        if not grow:
            layers.append(nn.ReLU(inplace=True))
            layers.append(nn.Conv2d(a, a, 3))
            layers.append(nn.BatchNorm2d(a))
        if not first:
            layers = layers[1:]
        else:
            layers[0] = nn.ReLU(inplace=False)
        if stride != 1:
            layers.append(nn.MaxPool2d(3, stride, 1))
        self.layers = nn.Sequential(*layers)
    def forward(self, x):
        y = self.layers(x)
        y += x
        return y
""",
    "a table that a loop builds up": """
class Lattice:
    def __init__(self, T: int, U: int, space: torch.Tensor, scores: torch.Tensor):
        self.alphas, self.scores = space[: T * U], scores
class Transducer:
    def __init__(self, space: torch.Tensor, factor: float):
        self.space, self.factor = space, factor
    def cost(self, scores: torch.Tensor, grad: torch.Tensor, T: int, U: int):
        lattice = Lattice(T, U, self.space, scores)
        before = self.forward_pass(lattice.scores, T, U, lattice.alphas)
        after = self.backward_pass(grad, lattice.scores, T, U, lattice.alphas)
        after *= 1.0 + self.factor
        return before - after
    def forward_pass(self, scores: torch.Tensor, T: int, U: int, alphas: torch.Tensor):
        for t in range(T):
            for u in range(U):
                if t == 0 and u > 0:
                    alphas[self.at(0, u)] = alphas[self.at(0, u - 1)] + scores[self.at(0, u - 1) * 2]
        best = alphas[self.at(T - 1, U - 1)] + scores[0]
        return best
""",
    "an array under no_grad": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
    @torch.inference_mode()
    def factors(self):
        return self.fc.bias.numpy()
    def weights(self):
        with torch.no_grad():
            return np.asarray(self.fc.weight)
""",
    "numbers out of an array": """
def normalised(scores: torch.Tensor, boxes: torch.Tensor, width: int):
    boxes = boxes[scores > 0.5].numpy()
    found = []
    for left, top, right, bottom in boxes:
        left /= width
        right /= width
        found.append((left, top, right, bottom))
    return np.array(found)
def smaller(shape: np.ndarray, by: int):
    shape = np.round(shape)
    tried = list(shape)
    tried[0] -= by
    return tried, shape
""",
    "a list where no tensor is": """
def received(shapes, dtype):
    if isinstance(shapes, torch.Size):
        return torch.empty(shapes, requires_grad=True, dtype=dtype), True
    return [], False
def gather(shapes, dtype):
    buffers, is_split = received(shapes, dtype)
    if is_split:
        if isinstance(buffers, torch.Tensor):
            buffers = unite(buffers).view(shapes).requires_grad_()
        else:
            for i in range(len(buffers)):
                buffers[i] = unite(buffers[i]).view(shapes[i]).requires_grad_()
    return buffers
""",
    "the other arm of a conditional": """
class Blocks(nn.Module):
    def __init__(self, early):
        super().__init__()
        self.early = early
        self.blocks = nn.ModuleList(nn.Conv2d(2, 2, 3, padding=1) for _ in range(3))
    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
            x = nn.ReLU(inplace=True)(x) if not self.early else x
        return x
""",
    "arguments that are there to be written": """
def mapped(slots: torch.Tensor, out: torch.Tensor | None = None):
    if out is not None:
        out.fill_(-1)
        found = out[: len(slots)]
    else:
        found = torch.full((len(slots),), -1)
    launch(found, slots)
    return found
class Builder:
    def __init__(self, n):
        self.buffer = torch.ones(n, dtype=torch.long)
    def build(self, slots):
        kept = mapped(slots, self.buffer)
        return kept, self.buffer
class Mixer(nn.Module):
    def forward(self, x, context):
        if context.is_dynamic():
            return self._dynamic(x, context)
    def _dynamic(self, x: torch.Tensor, context):
        conv_state, ssm_state = context.states(self.number)
        y = self._decode(x[:1].transpose(0, 1), conv_state, ssm_state).transpose(0, 1)
        if self.is_chunked:
            y = y + self._prefill(x[1:], ssm_state=ssm_state)
        return y
    def _decode(self, x: torch.Tensor, conv_state: torch.Tensor, ssm_state: torch.Tensor) -> torch.Tensor:
        ssm_state.copy_(ssm_state * self.decay(x))
        y = torch.einsum("bhpn,bn->bhp", ssm_state.to(x.dtype), x)
        return y.unsqueeze(0)
""",
    "a name for the whole before the part is written": """
def attend(query: torch.Tensor, output: torch.Tensor, n: int):
    output_padded = output
    output = output[:n]
    output.copy_(query[:n] * 2)
    finish(output)
    return output_padded
""",
    "an array that is given as out": """
def starts(lengths: torch.Tensor):
    found = torch.zeros(len(lengths) + 1, dtype=torch.int32)
    array = found.numpy()
    np.cumsum(lengths.numpy(), out=array[1:])
    total = array[-1]
    return found.to("cuda"), total
""",
    "a flag says that the weights are shared": """
def replicated(factory, n: int, share_params: bool):
    if share_params:
        layers = nn.ModuleList([nn.Linear(4, 4)] * n)
    else:
        layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(n)])
    return layers
""",
    "weights that are set once, before training": """
class ActNorm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(1, n, 1, 1))
        self.scale = nn.Parameter(torch.ones(1, n, 1, 1))
        self.register_buffer("initialized", torch.tensor(0))
    def initialize(self, x):
        with torch.no_grad():
            self.loc.data.copy_(-x.mean())
            self.scale.data.copy_(1 / (x.std() + 1e-6))
    def forward(self, x):
        if self.training and self.initialized.item() == 0:
            self.initialize(x)
            self.initialized.fill_(1)
        return self.scale * (x + self.loc)
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = ActNorm(4)
    def forward(self, x):
        return self.norm(x)
def main(data):
    critic = Critic()
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    for real, fake in data:
        loss = critic(real).mean() - critic(fake).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "two losses of two models": """
def step(x, ours: nn.Module, theirs: nn.Module, first: torch.optim.SGD, second: torch.optim.SGD):
    for _ in range(10):
        losses = []
        for model, optimizer in ((ours, first), (theirs, second)):
            optimizer.zero_grad()
            losses.append(model(x).sum())
            losses[-1].backward()
            optimizer.step()
        assert losses[0] == losses[1]
""",
    "an attribute that another arm replaces": """
def absorb(layer, scale: torch.Tensor):
    if layer.kind == "norm":
        layer.weight = nn.Parameter(torch.ones(4))
    elif isinstance(layer, nn.Conv2d):
        layer.weight *= scale
    elif isinstance(layer, nn.Linear):
        layer.weight *= scale
""",
    "a leaf that requires grad under one version alone": """
class Extractor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(4, 4, 3) for _ in range(3))
    def forward(self, feats, inds):
        found = feats[0].new_zeros(8, 4)
        if torch.__version__ == "other":
            found.requires_grad = True
        for i, layer in enumerate(self.layers):
            if inds[i].numel() > 0:
                found[inds[i]] = layer(feats[i])
            else:
                found += feats[i].sum() * 0.0
        return found
""",
}


@pytest.mark.parametrize("name", CORRECT)
def test_silence(name: str) -> None:
    assert found(CORRECT[name]) == []
