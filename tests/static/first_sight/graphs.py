"""Correct code of graphs and layouts on which tensafe spoke at first sight, and the fault beside it."""

from __future__ import annotations

PAIRS = {
    "an image that convolutions shrink to one pixel": (
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, (5, 5), stride=(2, 2))
        self.last = nn.Conv2d(8, 4, (5, 5))
    def forward(self, x):
        x = self.last(F.relu(self.first(x.permute(0, 3, 1, 2))))
        return x.view(x.size(0), -1)
Encoder()(torch.rand(2, 13, 13, 3))
""",
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
    def forward(self, x):
        x = F.relu(self.first(x.permute(0, 3, 1, 2)))
        return x.view(x.size(0), -1)  # finds TS307
Encoder()(torch.rand(2, 13, 13, 3))
""",
    ),
    "a dimension of size one between two others": (
        """
def flat(n, k):
    x = torch.rand(k, n).t()
    y = torch.empty(n, 1, k)
    return x, y.view(-1)
""",
        """
def flat(n, k):
    x = torch.rand(k, n).t()
    y = torch.empty(n, 2, k).transpose(0, 1)
    return x, y.view(-1)  # finds TS307
""",
    ),
    "parameters that were detached in place": (
        """
class Average(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.average = copy.deepcopy(model)
        for p in self.average.parameters():
            p.detach_()
    def all(self):
        for p in self.average.parameters():
            yield p
def mixed(model: nn.Module, states):
    made = Average(model)
    for state in states:
        for p in made.all():
            p.add_(state)
    return made
""",
        """
class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.average = nn.Linear(2, 2)
    def all(self):
        for p in self.average.parameters():
            yield p
def mixed(states):
    made = Average()
    for state in states:
        for p in made.all():
            p.add_(state)  # finds TS203
    return made
""",
    ),
    "a module in the hands of a function out of sight": (
        """
from elsewhere import quantize_
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
def load(state, config):
    model = Model()
    quantize_(model, config)
    model.linear.weight.copy_(state["linear.weight"])
    return model
""",
        """
from elsewhere import summary
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
def load(state, config):
    model = Model()
    summary(model, config)
    model.linear.weight.copy_(state["linear.weight"])  # finds TS203
    return model
""",
    ),
    "a state that a function out of sight resets": (
        """
from elsewhere import reset_net
class Neuron(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.v = 0.0
    def forward(self, x):
        self.v = self.v + self.fc(x)
        return self.v
net = Neuron()
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.ones(1, 2)).square().sum().backward()
    opt.step()
    reset_net(net)
""",
        """
class Neuron(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.v = 0.0
    def forward(self, x):
        self.v = self.v + self.fc(x)  # finds TS206
        return self.v
net = Neuron()
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.ones(1, 2)).square().sum().backward()
    opt.step()
""",
    ),
    "padding, which has no parameters": (
        """
def scale(x):
    found = torch.sqrt((x - x.mean()) ** 2)
    found[found == 0] = 1.0
    return found
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pad, self.fc = nn.ConstantPad1d((0, 2), 0.0), nn.Linear(2, 2)
    def training_step(self, batch):
        x, y = self.pad(batch["x"]), batch["y"].clone()
        y[y < 0] = 0
        return (self.fc(y) * x / scale(x)).mean()
""",
        """
def scale(x):
    found = torch.sqrt((x - x.mean()) ** 2)
    found[found == 0] = 1.0  # finds TS201
    return found
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pad, self.fc = nn.ConstantPad1d((0, 2), 0.0), nn.Linear(2, 2)
    def training_step(self, batch):
        x, y = self.fc(self.pad(batch["x"])), batch["y"].clone()
        y[y < 0] = 0
        return (y * x / scale(x)).mean()
""",
    ),
    "a model of an engine that computes no gradients": (
        """
from vllm.model_executor.layers.linear import QKVParallelLinear
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(4), QKVParallelLinear(4, 4)
    def forward(self, hidden: torch.Tensor):
        residual = hidden
        out = self.attention(self.norm(hidden))
        residual += out
        return residual
""",
        """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(4), nn.Linear(4, 4)
    def forward(self, hidden: torch.Tensor):
        residual = hidden
        out = self.attention(self.norm(hidden))
        residual += out  # finds TS201
        return residual
""",
    ),
    "an order that the first round alone has": (
        """
grid = torch.rand(8, 4, 2).permute(2, 0, 1)
for step in range(10):
    row = grid.contiguous()[0] * step
    grid = torch.cat((grid, grid), 1)
""",
        """
grid = torch.rand(8, 4, 2).permute(2, 0, 1)
for step in range(10):
    row = grid.contiguous()[0] * step  # finds TS302
    more = torch.cat((grid, grid), 1)
""",
    ),
    "operands of a call with out": (
        """
class Solver(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor):
        x, p, q = torch.zeros_like(b), b.clone(), torch.empty_like(b)
        for i in range(3):
            if i > 0:
                p.mul_(0.5)
            torch.matmul(a, p, out=q)
            x = x + p * torch.dot(p, q)
        return x
""",
        """
class Solver(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor):
        x, p = torch.zeros_like(b), b.clone()
        for i in range(3):
            if i > 0:
                p.mul_(0.5)  # finds TS201
            q = torch.matmul(a, p)
            x = x + p * torch.dot(p, q)
        return x
""",
    ),
    "gradients that are differentiated again by a function": (
        """
def product(gradients, model, v):
    return torch.autograd.grad(gradients, model.parameters(), grad_outputs=v, retain_graph=True)[0]
def solve(hessian, b, x):
    with torch.no_grad():
        x += b
    return hessian(x)
def step(model, loss):
    gradients = torch.autograd.grad(loss, model.parameters(), create_graph=True)
    g = torch.cat([one.view(-1) for one in gradients])
    return solve(lambda v: product(g, model, v), g, torch.zeros(4))
""",
        """
def solve(b, x):
    with torch.no_grad():
        x += b  # finds TS205
    return x
def step(model, loss):
    gradients = torch.autograd.grad(loss, model.parameters(), create_graph=True)
    g = torch.cat([one.view(-1) for one in gradients])
    return solve(g, torch.zeros(4))
""",
    ),
    "a result that its operation keeps beside its inputs": (
        """
def stress(x: torch.Tensor):
    x = nn.Parameter(x)
    found = torch.cdist(x, x).clone()
    found[found <= 0] += 1e-7
    return found.sum()
""",
        """
def stress(x: torch.Tensor):
    x = nn.Parameter(x)
    found = torch.cat([x, x]).clone()  # finds TS301
    found[found <= 0] += 1e-7
    return found.sum()
""",
    ),
    "a loss of a network that gives two values": (
        """
class Agent:
    def __init__(self, make):
        self.critic, self.alpha = make().to("cpu"), nn.Parameter(torch.ones(1))
        self.optimizer = torch.optim.Adam(self.critic.parameters())
    def update(self, state, action, reward):
        actor = self.actor(state)
        target = (reward - self.alpha * actor.log_prob(action).sum(-1)).detach()
        one, other = self.critic(state, action)
        loss = F.mse_loss(one, target) + F.mse_loss(other, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
""",
        """
class Agent:
    def __init__(self):
        self.critic, self.alpha = nn.Linear(2, 2), nn.Parameter(torch.ones(1))
        self.optimizer = torch.optim.Adam(self.critic.parameters())
    def update(self, state, action, reward):
        target = (reward - self.alpha * state.sum(-1)).detach()
        one = self.critic(state).detach()  # finds TS205
        loss = F.mse_loss(one, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
""",
    ),
    "a loop that returns in its first round": (
        """
def loss(x: torch.Tensor, masks):
    total, count = 0, 0
    for mask in masks:
        total += x[mask].exp().sum()
        count += x[mask].exp().sum()
        return total / count
class Loss(nn.Module):
    def forward(self, x: torch.Tensor, masks):
        y = x.clone()
        y[y < 0] = 0
        return loss(y, masks)
""",
        """
def loss(x: torch.Tensor, masks):
    total, count = 0, 0
    for mask in masks:
        total += x[mask].exp().sum()
        count += x[mask].exp().sum()  # finds TS201
        total = total / count
    return total
""",
    ),
    "a predictor, whose result no loss is made of": (
        """
class PosePredictor(nn.Module):
    def forward(self, heatmaps: torch.Tensor):
        poses = heatmaps.sigmoid()
        poses[..., 2] = poses[..., 2].clamp(0, 1)
        return poses
""",
        """
class PoseHead(nn.Module):
    def forward(self, heatmaps: torch.Tensor):
        poses = heatmaps.sigmoid()
        poses[..., 2] = poses[..., 2].clamp(0, 1)  # finds TS201
        return poses
""",
    ),
    "a second name that the other arm makes, and parts that each round takes": (
        """
def step(buffer, grad: torch.Tensor, momentum: float):
    found = buffer
    if found is None:
        found = grad.clone()
        buffer = found
    else:
        found.mul_(momentum).add_(grad)
    return grad.add(found), buffer
def pack(x: torch.Tensor, n: int, out):
    for i in range(n):
        part = x[:, i * 8 : i * 8 + 8].type(torch.int32)
        part[:, 0] &= 15
        out[i] |= part[:, 0]
    return out
""",
        """
def pack(x: torch.Tensor, n: int, out):
    part = x[:, :8].type(torch.int32)
    part[:, 0] &= 15  # finds TS101
    return out | part[:, 0], x.sum()
""",
    ),
}
