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
        return self.b(h) * w.sum()
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
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    assert found(SNIPPETS[name]) == expected(SNIPPETS[name])
