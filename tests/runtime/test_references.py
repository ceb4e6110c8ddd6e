"""Live references: reported when they are used as copies, silent when the author means the live tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.watching import SETUP, lines, loud, watch

MODEL = (
    SETUP
    + """
model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    model(torch.ones(4, 2)).pow(2).sum().backward()
    optimizer.step()
step()
"""
)

USED_AS_A_COPY = {
    "restored": ("best = model.state_dict()", "step(); model.load_state_dict(best)"),
    "restored from a checkpoint dict": (
        "checkpoint = {'epoch': 1, 'model': model.state_dict()}",
        "step(); model.load_state_dict(checkpoint['model'])",
    ),
    "restored from a rebuilt dict": (
        "best = {k: v for k, v in model.state_dict().items()}",
        "step(); model.load_state_dict(best)",
    ),
    "restored after a write through data": (
        "best = model.state_dict()",
        "[p.data.add_(1) for p in model.parameters()]; model.load_state_dict(best)",
    ),
    "subtracted": (
        "start = list(model.parameters())",
        "step(); sum((p - q).norm() for p, q in zip(model.parameters(), start))",
    ),
    "subtracted from a comprehension": (
        "start = [p for p in model.parameters()]",
        "step(); sum((p - q).norm() for p, q in zip(model.parameters(), start))",
    ),
    "subtracted from a detached list": (
        "start = [p.detach() for p in model.parameters()]",
        "step(); sum((p - q).norm() for p, q in zip(model.parameters(), start))",
    ),
    "data subtracted from a list of data": (
        "start = [p.data for p in model.parameters()]",
        "step(); sum((p.data - q).norm() for p, q in zip(model.parameters(), start))",
    ),
    "subtracted from a state": (
        "old = model.state_dict()",
        "step(); [(p - old[name]).norm() for name, p in model.named_parameters()]",
    ),
    "optimizer state given to a second optimizer": (
        "other = torch.optim.Adam(model.parameters()); other.load_state_dict(optimizer.state_dict())",
        "step()",
    ),
}

MEANT = {
    "no write in between": "best = model.state_dict(); model.load_state_dict(best)",
    "deep copy": "best = copy.deepcopy(model.state_dict()); step()\nmodel.load_state_dict(best)",
    "cloned": "best = {k: v.clone() for k, v in model.state_dict().items()}\nstep()\n"
    "model.load_state_dict(best)",
    "another model": "target = copy.deepcopy(model); step(); target.load_state_dict(model.state_dict())",
    "written through the reference": "state = model.state_dict()\nstate['0.bias'].zero_()\n"
    "model.load_state_dict(state)",
    "written through a view of it": "state = model.state_dict()\n"
    "state['0.weight'][0].zero_()\n"
    "model.load_state_dict(state)",
    "replaced entries": "state = model.state_dict()\nstate['0.bias'] = torch.zeros(3)\n"
    "model.load_state_dict(state)",
    "list for clipping": "ps = list(model.parameters()); step(); nn.utils.clip_grad_norm_(ps, 1.0)",
    "exponential average": "ema = copy.deepcopy(model)\nfor _ in range(2):\n    step()\n"
    "    for e, p in zip(ema.parameters(), model.parameters()):\n"
    "        e.data.mul_(0.9).add_(p.data - e.data)",
    "new optimizer takes over": "new = torch.optim.Adam(model.parameters(), lr=0.01)\n"
    "new.load_state_dict(optimizer.state_dict())\nmodel(torch.ones(4, 2)).sum().backward()\nnew.step()",
    "tied weights are compared": "ps = list(model.parameters()); step()\n"
    "assert torch.equal(model[0].weight, ps[0])",
    "all pairs": "ps = [p for p in model.parameters() if p.ndim == 2]; step()\n"
    "[torch.dist(p.mean(), q.mean()) for p in ps for q in ps]\n"
    "ws = list(nn.Linear(2, 2).parameters()); [p.sum() - q.sum() for p in ws for q in ws]\n"
    "fs = list(model[0].parameters()); step(); [(p - q).sum() for p in fs[:1] for q in (p, p + 1)]",
    "some entries replaced after training": "state = model.state_dict(); step()\n"
    "state['1.weight'] = torch.zeros(1, 3); model.load_state_dict(state)",
    "loaded twice": "state = model.state_dict()\n"
    "for net in (model, copy.deepcopy(model), model): net.load_state_dict(state)",
    "written through data of the reference": "state = model.state_dict()\n"
    "for value in state.values(): value.data.add_(1)\n"
    "model.load_state_dict(state)",
    "device names": "for _ in range(2):\n    net = model.to('cpu')\n    step()\n    cpu_net = model.cpu()",
    "a live matrix and its transpose": "w = nn.Parameter(torch.rand(3, 3)); v = w.detach()\n"
    "w.data.clamp_(0, 1); (v - v.t()).norm()",
    "an equality test shows that it is live": "state = model.state_dict(); step()\n"
    "assert torch.equal(state['0.weight'], model[0].weight)",
    "mixed with the data of another": "state = model.state_dict(); other = copy.deepcopy(model)\n"
    "for k, v in other.state_dict().items(): state[k].mul_(0.9).add_(v.data, alpha=0.1)\n"
    "model.load_state_dict(state)",
    "spelled as itself": "ps = [p for p in model.parameters()]; step(); w = model[0].weight\n"
    "F.mse_loss(w, w), w - w",
    "moved twice under one name": "model = model.to('cpu'); model = model.float(); step()",
    "a difference of a value with itself": "x = torch.ones(3); (x - x).sum()\n"
    "w = model[0].weight; (w - w).sum()",
}


@pytest.mark.parametrize("name", USED_AS_A_COPY)
def test_used_as_a_copy(name: str, tmp_path: Path) -> None:
    kept, use = USED_AS_A_COPY[name]
    record = watch(f"{kept}\n{use}\n", tmp_path, MODEL)
    assert "raised" not in record.summary
    assert lines(record, "TS102") == [kept]
    assert loud(record)[0].because, "the other places"


@pytest.mark.parametrize("name", MEANT)
def test_meant(name: str, tmp_path: Path) -> None:
    record = watch(MEANT[name], tmp_path, MODEL)
    assert "raised" not in record.summary
    assert loud(record) == []


def test_two_names_for_one_module(tmp_path: Path) -> None:
    record = watch(
        """
        class Agent:
            def __init__(self, net, device="cpu"):
                self.online = net.to(device)
                self.target = net.to(device)
                self.optimizer = torch.optim.SGD(self.online.parameters(), lr=0.1)

        agent = Agent(nn.Linear(2, 1))
        agent.online(torch.ones(1, 2)).sum().backward()
        agent.optimizer.step()
        """,
        tmp_path,
    )
    assert lines(record, "TS102") == ["self.target = net.to(device)"]
    assert "self.online = net.to(device)" in [
        Path(item.site.path).read_text().splitlines()[item.site.line - 1].strip()
        for item in loud(record)[0].because
    ]
