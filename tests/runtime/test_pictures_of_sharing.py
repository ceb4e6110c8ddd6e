"""Where the tensors of TS102 and TS108 lie, note by note: what is kept live, sent, received, filled."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.test_pictures import the
from runtime.watching import watch
from tensafe.findings import Finding

Row = tuple[str, str, int, tuple[int, ...]]
"""Of a tensor: the role, the label, the offset and the shape."""

CASES = Path(__file__).parents[1] / "cases" / "memory"

OPTIMIZERS = """
def step(model, optimizer):
    model(torch.ones(8, 3)).sum().backward()
    optimizer.step()

first, second = nn.Linear(3, 2), nn.Linear(3, 2)
one, other = torch.optim.Adam(first.parameters()), torch.optim.Adam(second.parameters())
step(first, one)
other.load_state_dict(one.state_dict())
step(first, one)
"""
TWINS = """
class Agent:
    def __init__(self, net, device):
        self.online = net.to(device)
        self.target = net.to(device)
        self.optimizer = torch.optim.SGD(self.online.parameters(), lr=0.1)

agent = Agent(nn.Linear(3, 2), "cpu")
agent.online(torch.ones(1, 3)).sum().backward()
agent.optimizer.step()
"""
SENT = """
import multiprocessing
queue = multiprocessing.get_context("fork").Queue()
table = torch.zeros(4, 5)
for step in range(2):
    table[1:3].fill_(step)
    queue.put(table)
    queue.get()
"""
CACHED = """
from torch.utils.data import DataLoader, Dataset
class Cached(Dataset):
    def __init__(self):
        self.cache = torch.full((6,), -1.0)
    def __len__(self):
        return 6
    def __getitem__(self, index):
        if self.cache[index] < 0:
            self.cache[index] = float(index)
        return self.cache[index]

if __name__ == "__main__":
    data = Cached()
    for epoch in range(2):
        for batch in DataLoader(data, num_workers=1, multiprocessing_context="fork"):
            pass
"""
STATE = """
from torch.utils.data import DataLoader, Dataset
class Scaled(Dataset):
    def __init__(self):
        self.scale = 1
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return torch.ones(1) * self.scale

data = Scaled()
loader = DataLoader(data, num_workers=1, multiprocessing_context="fork", persistent_workers=True)
for epoch in range(2):
    data.scale = epoch + 1
    for batch in loader:
        pass
del loader  # and its workers
"""


def rows(finding: Finding) -> list[Row]:
    (memory,) = finding.memory
    return [(tensor.role, tensor.label, tensor.offset, tensor.shape) for tensor in memory.tensors]


@pytest.mark.parametrize(
    ("code", "name", "drawn"),
    [
        (
            OPTIMIZERS,
            "live-reference-snapshot",
            [("written by one", "exp_avg", 0, (2, 3)), ("held by the other", "exp_avg", 0, (2, 3))],
        ),
        (TWINS, "live-reference-snapshot", [("written, and held by both", "weight", 0, (2, 3))]),
        (SENT, "shared-memory", [("sent", "", 0, (4, 5)), ("written by `Tensor.fill_`", "", 20, (2, 5))]),
        (CACHED, "shared-memory", [("of this process alone", "self.cache", 0, (6,))]),
    ],
)
def test_each_note_about_tensors_has_a_picture(
    code: str, name: str, drawn: list[Row], tmp_path: Path
) -> None:
    finding = the(code, name, tmp_path)
    assert rows(finding) == drawn
    assert all(because.when for because in finding.because)


@pytest.fixture
def _open_files() -> Iterator[None]:
    """The case lowers how many files a process may have open."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("_open_files")
def test_one_of_the_tensors_that_are_kept_as_workers_sent_them_is_drawn(tmp_path: Path) -> None:
    text = (CASES / "kept-batches-exhaust-file-descriptors.py").read_text()
    (finding,) = (one for one in watch(text, tmp_path, setup="").findings if one.code == "TS108")
    assert rows(finding) == [("received, and kept", "", 0, (1, 1))]


def test_what_no_tensor_holds_has_no_picture_but_an_order_of_time(tmp_path: Path) -> None:
    finding = the(STATE, "shared-memory", tmp_path)
    assert finding.memory == ()
    assert [(because.role, because.when) for because in finding.because] == [
        ("iterated again here", "after"),
        ("read in the workers here", "after"),
    ]
