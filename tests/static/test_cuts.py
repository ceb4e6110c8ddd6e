"""Values that leave their graph on the way to the loss."""

from __future__ import annotations

import pytest

from static.checking import expected, found

SNIPPETS = {
    "losses_made_a_tensor_then_forced": """
losses = []
net = nn.Linear(2, 1)
for _ in range(3):
    losses.append(net(torch.ones(1, 2)).mean())
loss = torch.tensor(losses).sum()  # finds TS205
loss.requires_grad = True
loss.backward()
""",
    "item_wrapped_again": """
net = nn.Linear(2, 1)
out = net(torch.ones(1, 2))
loss = torch.tensor(F.mse_loss(out, torch.zeros(1, 1)).item(), requires_grad=True)  # finds TS205
loss.backward()
""",
    "detached_then_forced": """
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
out = net(torch.ones(4, 2)).detach()  # finds TS205
loss = F.mse_loss(out, torch.zeros(4, 1))
loss.requires_grad_(True)
loss.backward()
opt.step()
""",
    "numpy_loss_wrapped_again": """
net = nn.Linear(2, 1)
pred = net(torch.ones(4, 2)).detach().numpy()
loss = torch.tensor(np.mean(pred ** 2), requires_grad=True)  # finds TS205
loss.backward()
""",
    "temperature_of_an_agent": """
net = nn.Linear(2, 1)
log_alpha = torch.tensor(0.0, requires_grad=True)
opt = torch.optim.SGD([log_alpha], lr=0.1)
entropy = net(torch.ones(1, 2)).mean()
loss = -(log_alpha * (entropy + 1).detach()).mean()
loss.backward()
opt.step()
""",
    "statistics_rebuilt": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
    def forward(self, x):
        h = self.a(x)
        w = torch.tensor([h.mean(), h.std()])  # finds TS205
        return self.b(x) * w.sum()
net = Net()
net(torch.ones(2, 4)).sum().backward()
""",
    "function_that_writes_its_input": """
class AddOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        x.add_(w)  # finds TS205
        return x.sum()
    @staticmethod
    def backward(ctx, g):
        return g, g
w = torch.ones(1, requires_grad=True)
h = nn.Linear(2, 2)(torch.ones(1, 2))
AddOne.apply(h, w)
h.sum().backward()
""",
    "inner_step_unrecorded": """
def inner(model, x, y, lr):
    loss = F.mse_loss(model(x), y)
    grads = torch.autograd.grad(loss, model.parameters(), create_graph=True)
    with torch.no_grad():
        for p, g in zip(model.parameters(), grads):
            p -= lr * g  # finds TS205
    return model
""",
    "inner_step_recorded": """
def inner(model, x, y, lr):
    loss = F.mse_loss(model(x), y)
    grads = torch.autograd.grad(loss, model.parameters(), create_graph=True)
    return [p - lr * g for p, g in zip(model.parameters(), grads)]
""",
    "total_of_numbers_wrapped": """
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0.0
for _ in range(4):
    total += F.mse_loss(net(torch.rand(3, 2)), torch.rand(3, 1)).item()
loss = torch.tensor(total / 4, requires_grad=True)  # finds TS205
opt.zero_grad()
loss.backward()
opt.step()
""",
    "wrapped_without_a_graph": """
net = nn.Linear(2, 1)
x = torch.rand(3, 2)
with torch.no_grad():
    out = net(x)
loss = out.mean()
from torch.autograd import Variable
loss = Variable(torch.tensor(loss.item()), requires_grad=True)
loss.backward()
""",
    "float_tensor_of_losses": """
net = nn.Linear(2, 1)
out = net(torch.rand(3, 2))
loss = torch.FloatTensor([out.mean(), out.std()]).sum()  # finds TS205
loss.requires_grad = True
loss.backward()
""",
    "log_probs_of_an_episode": """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def forward(self, x):
        return F.softmax(self.fc(x), dim=-1)
policy = Policy()
opt = torch.optim.Adam(policy.parameters())
def finish(log_probs, rewards):
    returns = torch.tensor(rewards)
    loss = -(torch.tensor(log_probs) * returns).sum()  # finds TS205
    loss.requires_grad_()
    opt.zero_grad()
    loss.backward()
    opt.step()
lp, rs = [], []
for _ in range(5):
    m = torch.distributions.Categorical(policy(torch.rand(3)))
    a = m.sample()
    lp.append(m.log_prob(a))
    rs.append(1.0)
finish(lp, rs)
""",
    "checkpoint_of_raw_input": """
from torch.utils.checkpoint import checkpoint
body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
head = nn.Linear(4, 1)
x = torch.rand(2, 4)
head(checkpoint(body, x, use_reentrant=True)).sum().backward()  # finds TS205
x.requires_grad_(True)
head(checkpoint(body, x, use_reentrant=True)).sum().backward()
""",
    "generator_scored_on_detached": """
G = nn.Linear(2, 4)
D = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
g_opt = torch.optim.Adam(G.parameters())
z, real = torch.rand(3, 2), torch.rand(3, 4)
fake = G(z)
g_loss = F.binary_cross_entropy_with_logits(D(fake.detach()), torch.ones(3, 1))  # finds TS205
g_opt.zero_grad()
g_loss.backward()
g_opt.step()
""",
    "codebook_with_straight_through": """
enc = nn.Linear(4, 2)
emb = nn.Embedding(8, 2)
z = enc(torch.rand(3, 4))
idx = torch.cdist(z, emb.weight).argmin(1)
q = emb(idx)
loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
q = z + (q - z).detach()
(loss + q.sum()).backward()
""",
    "distillation": """
student, teacher = nn.Linear(3, 3), nn.Linear(3, 3)
x = torch.rand(2, 3)
loss = F.mse_loss(student(x), teacher(x).detach())
loss.backward()
for p, t in zip(student.parameters(), teacher.parameters()):
    t.data.mul_(0.99).add_(p.data, alpha=0.01)
""",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    assert found(SNIPPETS[name]) == expected(SNIPPETS[name])
