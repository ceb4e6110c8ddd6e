"""What PyTorch refuses for the sake of a graph: in-place writes, arrays, deep copies, second backwards."""

from __future__ import annotations

import pytest

from static.checking import expected, found

REFUSED = {
    "a parameter is filled in a method that the constructor calls": """
class Gain(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(3))
        self.reset()
    def reset(self):
        self.gain.fill_(0.5)  # finds TS203
""",
    "leaves are updated by a helper": """
def update(params):
    for p in params:
        p.sub_(0.1 * p.grad)  # finds TS203
def fit(x):
    w, b = torch.zeros(3, requires_grad=True), torch.zeros(1, requires_grad=True)
    (x @ w + b).sum().backward()
    update([w, b])
""",
    "a kernel is copied into a layer that the function has made": """
def fold(conv):
    folded = nn.Conv2d(conv.in_channels, 3, 1)
    folded.weight.copy_(conv.weight)  # finds TS203
    return folded
""",
    "weights are clipped after the step": """
class Trainer:
    def __init__(self):
        self.critic = nn.Linear(2, 1)
    def step(self, x):
        self.critic(x).mean().backward()
        for p in self.critic.parameters():
            p.clamp_(-1, 1)  # finds TS203
""",
    "requires_grad is switched on by assignment": """
x = torch.linspace(0, 1, 5)
x.requires_grad = True
x.clamp_(0, 1)  # finds TS203
""",
    "one of two halves is squashed in a forward": """
class Film(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8)
    def forward(self, x):
        gamma, beta = self.fc(x).chunk(2, dim=-1)
        gamma += 1  # finds TS204
        return gamma * x + beta
""",
    "the part of a part is written": """
class Box(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        xy, wh = torch.split(self.fc(x), 2, dim=-1)
        wh[..., 0] = 1  # finds TS204
        return xy + wh
""",
    "a tensor is unpacked": """
a, b = nn.Linear(2, 2)(torch.ones(2, 2))
a.mul_(2)  # finds TS204
""",
    "a view of another mode": """
z = nn.Linear(3, 3)(torch.ones(2, 3))
with torch.no_grad():
    row = z[0]
row += 1  # finds TS204
""",
    "an inference tensor": """
net = nn.Linear(3, 3)
with torch.inference_mode():
    cache = net(torch.ones(2, 3))
cache.mul_(0.5)  # finds TS204
""",
    "what a custom Function returns unchanged": """
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return -g
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.act = nn.Linear(2, 2), nn.ReLU(inplace=True)
    def forward(self, x):
        return self.act(Reverse.apply(self.fc(x)))  # finds TS204
""",
    "a hooked layer before an in-place one": """
conv, act = nn.Conv2d(1, 1, 1), nn.ReLU(inplace=True)
conv.register_full_backward_hook(lambda module, before, after: None)
act(conv(torch.ones(1, 1, 2, 2)))  # finds TS204
""",
    "a prediction is converted": """
net = nn.Linear(2, 1)
def predict(x):
    return net(x).cpu().numpy()  # finds TS208
predict(torch.ones(1, 2))
""",
    "predictions collected on an object are joined": """
class Evaluator:
    def __init__(self, net):
        self.net, self.outputs = net, []
    def run(self, batches):
        for batch in batches:
            self.outputs.append(self.net(batch))  # finds TS208
        return np.concatenate(self.outputs)
Evaluator(nn.Linear(2, 1)).run([torch.ones(1, 2), torch.ones(1, 2)])
""",
    "losses come out of zip": """
class Client:
    def __init__(self, net):
        self.net = net
    def test(self):
        loss = self.net(torch.ones(1, 2)).mean()
        return 1, loss  # finds TS208
net = nn.Linear(2, 1)
counts, losses = zip(*[client.test() for client in [Client(net), Client(net)]])
print(np.average(losses, weights=counts))
""",
    "a metric of sklearn converts": """
from sklearn.metrics import r2_score
net, y = nn.Linear(2, 1), torch.ones(5, 1)
print(r2_score(y, net(torch.ones(5, 2))))  # finds TS208
""",
    "a parameter is converted in any function": """
class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
    def weights(self):
        return self.fc.weight.numpy()  # finds TS208
""",
    "a map kept by a layer deep inside": """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 4)
    def forward(self, x):
        self.map = self.q(x).softmax(-1)  # finds TS306
        return self.map * x
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Attention(), Attention()])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
model = Model()
model(torch.ones(1, 4))
best = copy.deepcopy(model)
""",
    "the older weight_norm": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.utils.weight_norm(nn.Conv1d(1, 2, 3))  # finds TS306
class Average:
    def __init__(self, net):
        self.net = copy.deepcopy(net)
Average(Net())
""",
    "a lock below the model": """
import threading
class Counter:
    def __init__(self):
        self.lock = threading.RLock()  # finds TS305
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = Counter()
average = copy.deepcopy(Net())
""",
    "a file and a generator": """
def batches():
    yield torch.ones(2)
class Logged:
    def __init__(self, path):
        self.file = open(path)  # finds TS305
class Agent:
    def __init__(self):
        self.batches = batches()  # finds TS305
copy.deepcopy(Logged("log")), copy.deepcopy(Agent())
""",
    "embeddings computed before the loop": """
table, head = nn.Embedding(10, 4), nn.Linear(4, 2)
vectors = torch.tanh(table(torch.arange(10)))  # finds TS206
for _ in range(3):
    head(vectors).logsumexp(1).mean().backward()
""",
    "a state carried by a cell": """
class Controller(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.state = nn.GRUCell(3, 4), torch.zeros(1, 4)
    def forward(self, x):
        self.state = self.cell(x, self.state)  # finds TS206
        return self.state
controller = Controller()
for _ in range(3):
    controller(torch.ones(1, 3)).pow(2).mean().backward()
""",
    "a state that comes from a layer": """
cell, state = nn.GRU(3, 4), None
for batch in batches():
    out, state = cell(batch.x, state)  # finds TS206
    out.mean().backward()
""",
    "two losses of one encoder": """
encoder, one, other = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
code = encoder(torch.ones(1, 3)).tanh()  # finds TS206
first, second = one(code).mean(), other(code).mean()
first.backward()
second.backward()
""",
    "a scale computed in the constructor": """
class Kernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.scale = self.log_scale.exp()  # finds TS206
    def forward(self, x):
        return torch.linalg.cholesky(x @ x.t() / self.scale)
kernel = Kernel()
for _ in range(3):
    kernel(torch.eye(2)).sum().backward()
""",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(name: str) -> None:
    assert found(REFUSED[name]) == expected(REFUSED[name])
