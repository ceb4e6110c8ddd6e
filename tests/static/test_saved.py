"""Writes to tensors that a backward still needs, counted by autograd or not."""

from __future__ import annotations

import pytest

from static.checking import expected, found

SNIPPETS = {
    "data_clamped": """
class Scale(nn.Module):
    def forward(self, x):
        y = torch.exp(x)
        y.data.clamp_(max=10)  # finds TS202
        return y
""",
    "array_over_activation": """
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
    def forward(self, x):
        y = self.fc(x).tanh()
        arr = y.detach().numpy()
        arr *= 0.5  # finds TS202
        return y
""",
    "array_reused_before_backward": """
buf = np.zeros((4, 3), dtype=np.float32)
net = nn.Linear(3, 1)
total = 0
for i in range(3):
    buf[:] = np.random.rand(4, 3)  # finds TS202
    x = torch.from_numpy(buf)
    total = total + net(x).sum()
total.backward()
""",
    "array_reused_after_backward": """
buf = np.zeros((4, 3), dtype=np.float32)
net = nn.Linear(3, 1)
for i in range(3):
    buf[:] = np.random.rand(4, 3)
    x = torch.from_numpy(buf)
    net(x).sum().backward()
""",
    "buffer_refilled_before_backward": """
buf = torch.zeros(4, 3)
net = nn.Linear(3, 1)
total = 0
for i in range(3):
    buf.copy_(torch.rand(4, 3))  # finds TS201
    total = total + net(buf).sum()
total.backward()
""",
    "residual_onto_normed_input": """
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.fc = nn.Linear(d, d)
    def forward(self, x):
        x += self.fc(self.norm(x))  # finds TS201
        return x
""",
    "residual_onto_output": """
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.fc = nn.Linear(d, d)
    def forward(self, x):
        h = self.fc(self.norm(x))
        h += x
        return h
""",
    "gate_that_saves_its_own_output": """
class Act(nn.Module):
    def forward(self, x):
        s = torch.sigmoid(x)
        return x.mul_(s)
""",
    "relu_in_place_on_sigmoid": """
class Act(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
    def forward(self, x):
        s = torch.sigmoid(x)
        return self.relu(s)  # finds TS201
""",
    "recurrent_outputs_collected": """
class RNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 4)
    def forward(self, xs):
        h = torch.zeros(2, 4)
        outs = torch.zeros(10, 2, 4)
        for t in range(10):
            h = torch.tanh(self.cell(h))
            outs[t] = h
        return outs
""",
    "memory_updated_while_read": """
class Mem(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 4)
    def forward(self, x):
        mem = torch.zeros(10, 4)
        for t in range(10):
            mem[t] = torch.tanh(self.cell(mem)).mean(0)  # finds TS201
        return mem
""",
    "step_between_forward_and_backward": """
net = nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
out = net(net(torch.ones(1, 2)))
opt.step()  # finds TS201
out.sum().backward()
""",
    "focal_loss_reuses_probabilities": """
def focal_loss(logits, targets, gamma=2.0):
    p = torch.sigmoid(logits)
    ce = F.binary_cross_entropy(p, targets, reduction="none")
    p *= targets  # finds TS201
    return ((1 - p) ** gamma * ce).mean()
""",
    "plain_normalisation": """
def normalise(x):
    x /= x.max()
    return x
""",
    "preprocessing": """
def preprocess(images):
    images = images.float()
    images /= images.norm()
    images -= images.mean()
    return images
""",
    "scaled_without_recording": """
net = nn.Linear(3, 3)
x = torch.rand(2, 3)
h = net(x)
with torch.no_grad():
    h *= 0.5
y = h.exp()
y.sum().backward()
""",
    "input_written_after_product": """
W = torch.randn(3, 3, requires_grad=True)
x = torch.rand(3)
y = W @ x
x[0] = 5.0  # finds TS201
y.sum().backward()
""",
    "manual_descent": """
W = torch.randn(3, 3, requires_grad=True)
for step in range(10):
    y = (W @ torch.rand(3)).sum()
    y.backward()
    with torch.no_grad():
        W -= 0.1 * W.grad
        W.grad.zero_()
""",
    "view_of_relu_clamped": """
W = torch.randn(3, 3, requires_grad=True)
y = (W @ torch.rand(3)).relu()
z = y.view(-1)
z.clamp_(max=1.0)  # finds TS201
y.sum().backward()
""",
    "gan_steps_before_second_backward": """
class Gan:
    def __init__(self):
        self.G = nn.Linear(2, 2)
        self.D = nn.Linear(2, 1)
        self.optG = torch.optim.Adam(self.G.parameters())
        self.optD = torch.optim.Adam(self.D.parameters())
    def step(self, z, real):
        fake = self.G(z)
        d_fake = self.D(fake)
        d_loss = d_fake.mean() - self.D(real).mean()
        g_loss = -d_fake.mean()
        self.optD.zero_grad()
        d_loss.backward(retain_graph=True)
        self.optD.step()  # finds TS201
        self.optG.zero_grad()
        g_loss.backward()
        self.optG.step()
""",
    "gan_with_detach": """
class Gan:
    def __init__(self):
        self.G = nn.Linear(2, 2)
        self.D = nn.Linear(2, 1)
        self.optG = torch.optim.Adam(self.G.parameters())
        self.optD = torch.optim.Adam(self.D.parameters())
    def step(self, z, real):
        fake = self.G(z)
        d_loss = self.D(fake.detach()).mean() - self.D(real).mean()
        self.optD.zero_grad()
        d_loss.backward()
        self.optD.step()
        g_loss = -self.D(fake).mean()
        self.optG.zero_grad()
        g_loss.backward()
        self.optG.step()
""",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    assert found(SNIPPETS[name]) == expected(SNIPPETS[name])
