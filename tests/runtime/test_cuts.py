"""Graph cuts: reported when parameters starve behind them, silent for logs, targets and frozen parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.watching import SETUP, lines, loud, watch

MODEL = (
    SETUP
    + """
from torch.utils.checkpoint import checkpoint
net = nn.ModuleDict({"policy": nn.Linear(2, 2), "value": nn.Linear(2, 1)})
x = torch.ones(4, 2)
def optimize(parameters):
    return torch.optim.SGD(parameters, lr=0.1)
"""
)

CUT = {
    "losses rebuilt as a leaf": (
        "loss = torch.tensor(losses, requires_grad=True).mean()",
        """
        optimizer = optimize(net.parameters())
        losses = [net["policy"](x).sum(), net["value"](x).sum()]
        {}
        loss.backward()
        optimizer.step()
        """,
    ),
    "half of the loss rebuilt": (
        "logs = torch.tensor(logs)",
        """
        optimizer = optimize(net.parameters())
        for _ in range(3):
            logs = [row.sum() for row in net["policy"](x)]
            {}
            loss = (logs.mean() + net["value"](x).sum())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    ),
    "half of the loss rebuilt, no optimizer": (
        "logs = torch.tensor(logs)",
        """
        logs = [row.sum() for row in net["policy"](x)]
        {}
        (logs.mean() + net["value"](x).sum()).backward()
        """,
    ),
    "everything detached before the only head": (
        "features = net['policy'](x).detach()",
        """
        optimizer, head = optimize(net["policy"].parameters()), nn.Linear(2, 1)
        {}
        head(features).sum().backward()
        optimizer.step()
        """,
    ),
    "refused: rebuilt": (
        "loss = torch.tensor([value for value in losses]).mean()",
        """
        losses = [net["policy"](x).sum(), net["value"](x).sum()]
        {}
        loss.backward()
        """,
    ),
    "refused: detached": (
        "loss = net['policy'](x).sum().detach()",
        """
        {}
        loss.backward()
        """,
    ),
    "a number goes back into a tensor": (
        "loss = torch.tensor(net['policy'](x).sum().item(), requires_grad=True)",
        """
        optimizer = optimize(net["policy"].parameters())
        for _ in range(2):
            {}
            loss.backward()
            optimizer.step()
        """,
    ),
    "reentrant checkpoint of raw input": (
        "h = checkpoint(net['policy'], x, use_reentrant=True)",
        """
        {}
        net["value"](h).sum().backward()
        """,
    ),
    "inner step through data": (
        "p.data.sub_(g, alpha=0.1)",
        """
        learner = copy.deepcopy(net["policy"])
        grads = torch.autograd.grad(learner(x).pow(2).sum(), list(learner.parameters()), create_graph=True)
        for p, g in zip(learner.parameters(), grads):
            {}
        learner(x).pow(2).sum().backward()
        """,
    ),
    "in a function, models gone at the end": (
        "loss = torch.tensor([head(x).sum()], requires_grad=True)",
        """
        def main():
            head = nn.Linear(2, 1)
            optimizer = optimize(head.parameters())
            for _ in range(2):
                {}
                loss.backward()
                optimizer.step()
        main()
        """,
    ),
    "a total of numbers made a leaf": (
        "total += (net['value'](x).sum() + net['policy'](x).sum()).item()",
        """
        optimizer = optimize(net.parameters())
        for _ in range(3):
            total = 0.0
            {}
            loss = torch.tensor(total, requires_grad=True)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    ),
}

MEANT = {
    "item for the log": """
        optimizer = optimize(net.parameters())
        total = 0.0
        for _ in range(3):
            optimizer.zero_grad()
            loss = net["policy"](x).sum() + net["value"](x).sum()
            total += loss.item()
            loss.backward()
            optimizer.step()
        torch.tensor([loss.item(), total]).mean()
        """,
    "teacher": """
        teacher, optimizer = nn.Linear(2, 2), optimize(net.parameters())
        for _ in range(3):
            target = teacher(x).detach()
            loss = (net["policy"](x) - target).pow(2).sum() + net["value"](x).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "target network rebuilt": """
        teacher, optimizer = nn.Linear(2, 1), optimize(net.parameters())
        target = torch.tensor([1.0 + teacher(row).max() for row in x])
        ((net["value"](x)[:, 0] - target).pow(2).sum() + net["policy"](x).sum()).backward()
        optimizer.step()
        """,
    "losses logged as one tensor": """
        optimizer = optimize(net.parameters())
        for _ in range(2):
            a, b = net["policy"](x).sum(), net["value"](x).sum()
            shown = torch.tensor([a, b])
            optimizer.zero_grad()
            (a + b).backward()
            optimizer.step()
        """,
    "two players": """
        first, second = optimize(net["policy"].parameters()), optimize(net["value"].parameters())
        for _ in range(3):
            fake = net["policy"](x)
            d = net["value"](fake.detach()).sum()
            second.zero_grad(); d.backward(); second.step()
            g = net["value"](fake).sum(); d.item(), g.item()
            first.zero_grad(); g.backward(); first.step()
        """,
    "straight through": """
        optimizer = optimize(net.parameters())
        h = net["policy"](x)
        h = h + (h.round() - h).detach()
        net["value"](h).sum().backward()
        optimizer.step()
        """,
    "autograd.grad gives the gradients": """
        ps = list(net["policy"].parameters())
        loss = net["policy"](x).pow(2).sum()
        gs = torch.autograd.grad(loss, ps)
        logged = torch.tensor([loss.detach()])
        with torch.no_grad():
            for p, g in zip(ps, gs):
                p.sub_(g)
        net["value"](x).sum().backward()
        """,
    "frozen head": """
        for p in net["policy"].parameters():
            p.requires_grad_(False)
        optimizer = optimize(net.parameters())
        net["value"](net["policy"](x).detach()).sum().backward()
        optimizer.step()
        """,
    "first order meta learning": """
        learner = copy.deepcopy(net["policy"])
        learner(x).pow(2).sum().backward()
        for p, own in zip(learner.parameters(), net["policy"].parameters()):
            p.data.sub_(p.grad)
            own.grad = p.grad.clone()
        """,
    "encoder gives the start of an inversion": """
        encoder, decoder = net["policy"], nn.Linear(2, 2)
        z = torch.tensor(encoder(x), requires_grad=True)
        optimizer = optimize([z])
        for _ in range(2):
            optimizer.zero_grad()
            decoder(z).pow(2).sum().backward()
            optimizer.step()
        """,
    "late training of a logged head": """
        optimizer = optimize(net.parameters())
        for i in range(70):
            v, p = net["value"](x).pow(2).mean(), net["policy"](x).pow(2).mean()
            shown = torch.tensor([v, p])
            optimizer.zero_grad()
            (v if i < 65 else v + p).backward()
            optimizer.step()
        optimizer.zero_grad()
        """,
    "closure": """
        scale = nn.Parameter(torch.ones(1))
        before = (net["value"](x).detach() * scale).sum().item()
        net["policy"](x).sum().backward()
        optimize(net["policy"].parameters()).step()
        optimizer = torch.optim.LBFGS([scale], max_iter=2)
        def closure():
            optimizer.zero_grad()
            loss = (net["value"](x).detach() * scale).pow(2).sum()
            loss.backward()
            return loss
        optimizer.step(closure)
        optimizer.zero_grad()
        """,
    "optimizer in backward": """
        optimizers = {p: optimize([p]) for p in net["value"].parameters()}
        def step(p):
            optimizers[p].step()
            optimizers[p].zero_grad()
        for p in optimizers:
            p.register_post_accumulate_grad_hook(step)
        loss = net["value"](x).pow(2).sum()
        shown = torch.tensor([loss]), loss.item()
        loss.backward()
        """,
    "projection in a custom Function": """
        class Clip(torch.autograd.Function):
            @staticmethod
            def forward(ctx, w, t):
                w.clamp_(-1, 1)
                ctx.save_for_backward(w, t)
                return t @ w
            @staticmethod
            def backward(ctx, g):
                w, t = ctx.saved_tensors
                return t.t() @ g, None
        w = nn.Parameter(torch.rand(2, 2))
        Clip.apply(w, net["policy"](x)).sum().backward()
        optimize([w]).step()
        """,
    "a watched head that nobody trains": """
        optimizer = optimize(net.parameters())
        for _ in range(3):
            loss = net["policy"](x).mean()
            watched = torch.tensor([loss, net["value"](x.detach()).mean()])
            print(watched.shape)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "refused for another reason, in one function": """
        shown = net["policy"](x).detach()
        for p in net["value"].parameters():
            p.requires_grad_(False)
        try:
            net["value"](x).sum().backward()
        except RuntimeError:
            pass
        """,
    "an adversary is only watched": """
        first, second = optimize(net["policy"].parameters()), optimize(net["value"].parameters())
        for _ in range(3):
            loss, watched = net["policy"](x).mean(), net["value"](x).mean().item()
            loss.backward()
            first.step(); second.step()
        """,
    "refused for another reason": """
        def log():
            return net["policy"](x).detach()
        log()
        for p in net["value"].parameters():
            p.requires_grad_(False)
        try:
            net["value"](x).sum().backward()
        except RuntimeError:
            pass
        """,
    "mark_dirty": """
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, t, w):
                ctx.mark_dirty(t)
                return t.mul_(2)
            @staticmethod
            def backward(ctx, g):
                return g * 2, g.sum()
        w = torch.ones((), requires_grad=True)
        Double.apply(net["policy"](x), w).sum().backward()
        """,
    "checkpoint with a gradient at its input": """
        h = checkpoint(net["policy"], x.clone().requires_grad_(), use_reentrant=True)
        net["value"](h).sum().backward()
        """,
    "evaluation without grad": """
        with torch.no_grad():
            checkpoint(net["policy"], x, use_reentrant=True)
            torch.tensor([net["value"](row).sum() for row in x])
        net["value"](x).sum().backward()
        """,
    "a total for the log, reduced as a tensor": """
        optimizer = optimize(net.parameters())
        total = 0.0
        for _ in range(3):
            optimizer.zero_grad()
            loss = net["policy"](x).sum() + net["value"](x).sum()
            loss.backward()
            optimizer.step()
            total += loss.item()
        mean = torch.tensor(total) / 3
        """,
}


@pytest.mark.parametrize("name", CUT)
def test_cut(name: str, tmp_path: Path) -> None:
    line, code = CUT[name]
    record = watch(code.format(line), tmp_path, MODEL)
    assert lines(record, "TS205") == [line]
    assert all(finding.code == "TS205" for finding in loud(record))


@pytest.mark.parametrize("name", MEANT)
def test_meant(name: str, tmp_path: Path) -> None:
    record = watch(MEANT[name], tmp_path, MODEL)
    assert "raised" not in record.summary
    assert loud(record) == []


def test_a_starved_parameter_is_called_by_its_name(tmp_path: Path) -> None:
    line, code = CUT["half of the loss rebuilt, no optimizer"]
    (finding,) = loud(watch(code.format(line), tmp_path, MODEL))
    assert "`policy.weight`" in finding.message


LOGGED = {
    "an array for the metrics": "shown = out.data.cpu().numpy()",
    "a number": "shown = out.detach().sum().item()",
    "a formatted loss": "shown = f'{out.sum():.3f}'",
    "a hard sample": "out = out + F.gumbel_softmax(out, hard=True)",
}


@pytest.mark.parametrize("name", LOGGED)
def test_what_is_only_logged_is_no_notice_either(name: str, tmp_path: Path) -> None:
    code = f"out = net['policy'](x)\n{LOGGED[name]}\nout.sum().backward()\n"
    assert watch(code, tmp_path, MODEL + "import torch.nn.functional as F\n").findings == ()
