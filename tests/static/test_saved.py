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
    "attention_masked_in_place": """
class Attn(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
    def forward(self, x, mask=None):
        a = torch.softmax(self.q(x) @ self.k(x).transpose(-1, -2), -1)
        if mask is not None:
            a[mask] = 0  # finds TS201
        return a @ self.v(x)
""",
    "dropout_in_place_after_tanh": """
net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.5, inplace=True))
y = net(torch.rand(2, 4))  # finds TS201
y.sum().backward()
""",
    "relu_in_place_after_layers": """
net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4), nn.ReLU(True))
y = net(torch.rand(2, 4))
y.sum().backward()
""",
    "memory_bank_updated": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("memory", torch.randn(16, 4))
    def forward(self, x):
        q = self.fc(x)
        logits = q @ self.memory.t()
        self.memory[:2] = q.detach()  # finds TS201
        return logits
""",
    "memory_bank_cloned": """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("memory", torch.randn(16, 4))
    def forward(self, x):
        q = self.fc(x)
        logits = q @ self.memory.clone().t()
        self.memory[:2] = q.detach()
        return logits
""",
    "ratio_clamped_in_place": """
def ppo(policy, obs, act, adv, old, opt):
    logp = policy(obs).log_softmax(-1).gather(1, act).squeeze(1)
    ratio = (logp - old).exp()
    clipped = ratio.clamp_(0.8, 1.2)  # finds TS201
    loss = -torch.min(ratio * adv, clipped * adv).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "actor_and_critic": """
actor = nn.Linear(3, 2)
critic = nn.Linear(3, 1)
opt_a = torch.optim.Adam(actor.parameters())
opt_c = torch.optim.Adam(critic.parameters())
for _ in range(5):
    s = torch.rand(4, 3)
    v = critic(s)
    q = critic(torch.rand(4, 3))
    loss_c = (v - 1).pow(2).mean()
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    adv = (q - v).detach()
    loss_a = -(actor(s).log_softmax(-1)[:, 0] * adv.squeeze(1)).mean()
    opt_a.zero_grad()
    loss_a.backward()
    opt_a.step()
""",
    "product_input_scaled": """
W = nn.Parameter(torch.rand(3, 3))
x = torch.rand(2, 3)
y = x @ W
W.data.clamp_(-0.1, 0.1)
x.mul_(2)  # finds TS201
y.sum().backward()
""",
    "out_argument": """
w = torch.rand(3, requires_grad=True)
s = torch.sqrt(w)
torch.add(s, 1, out=s)  # finds TS201
s.sum().backward()
""",
    "array_out_argument": """
w = torch.rand(3, requires_grad=True)
s = w.sigmoid()
a = s.data.numpy()
np.multiply(a, 2, out=a)  # finds TS202
s.sum().backward()
""",
    "tensor_over_array": """
w = torch.rand(3, requires_grad=True)
s = w.exp()
view = torch.from_numpy(s.detach().numpy())
view[0] = 0  # finds TS201
s.sum().backward()
""",
    "residual_onto_relu": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
    def forward(self, x):
        x = F.relu(self.bn(self.conv1(x)))
        res = x
        x = self.conv2(x)
        res += x  # finds TS201
        return res
""",
    "residual_onto_norm": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
    def forward(self, x):
        res = x
        out = self.relu(self.bn(self.conv1(x)))
        out = self.bn(self.conv2(out))
        out += res
        return self.relu(out)
""",
    "gate_written_in_a_step": """
class GRU(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.gates, self.cand, self.n = nn.Linear(2 * n, 2 * n), nn.Linear(2 * n, n), n
    def step(self, x, h):
        z, r = torch.sigmoid(self.gates(torch.cat([x, h], 1))).chunk(2, 1)
        r *= h  # finds TS201
        c = torch.tanh(self.cand(torch.cat([x, r], 1)))
        return (1 - z) * h + z * c
    def forward(self, xs):
        h = xs.new_zeros(xs.size(1), self.n)
        for x in xs:
            h = self.step(x, h)
        return h
""",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    assert found(SNIPPETS[name]) == expected(SNIPPETS[name])
