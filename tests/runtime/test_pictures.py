"""Where the tensors of a finding lie, as the running engine tells it: the bytes that were really meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.watching import watch
from tensafe.findings import Finding, Memory, Reached, Severity

Row = tuple[str, int, tuple[int, ...], tuple[int, ...]]
"""What is compared of a tensor: the first word of its role, offset, shape and strides in bytes."""


def the(code: str, name: str, folder: Path) -> Finding:
    (finding,) = (one for one in watch(code, folder).findings if one.name == name)
    return finding


def rows(memory: Memory) -> list[Row]:
    return [_row(tensor) for tensor in memory.tensors]


def _row(tensor: Reached) -> Row:
    return tensor.role.split()[0], tensor.offset, tensor.shape, tensor.strides


SAVED: Row = ("saved", 0, (4, 8), (32, 4))


@pytest.mark.parametrize(
    ("write", "written"),
    [
        ("h.data.zero_()", (0, (4, 8), (32, 4))),
        ("h.data[1:3] = 0", (32, (2, 8), (32, 4))),
        ("h.data[:, 2].mul_(3)", (8, (4,), (32,))),
        ("h.data.t()[1] = 5", (4, (4,), (32,))),
        ("h.data[::2, ::4] += 1", (0, (2, 2), (64, 16))),
    ],
)
def test_a_write_behind_autograd_is_drawn_where_it_reached(
    write: str, written: tuple[int, tuple[int, ...], tuple[int, ...]], tmp_path: Path
) -> None:
    code = f"h = torch.ones(4, 8, requires_grad=True).exp()\n{write}\nh.sum().backward()\n"
    finding = the(code, "silent-gradient-corruption", tmp_path)
    (memory,) = finding.memory
    assert (memory.nbytes, memory.device) == (128, "cpu")
    assert rows(memory) == [SAVED, ("written", *written)]
    assert {tensor.dtype for tensor in memory.tensors} == {"float32"}


def test_a_write_through_a_view_that_is_gone_is_still_drawn(tmp_path: Path) -> None:
    code = "h = torch.ones(4, 8, requires_grad=True).exp()\nh[3].add_(1)\nspare = h[0]\nh.sum().backward()\n"
    finding = the(code, "saved-tensor-modified", tmp_path)
    assert rows(finding.memory[0]) == [SAVED, ("written", 96, (8,), (4,))]


def test_a_write_that_was_not_looked_at_is_not_guessed(tmp_path: Path) -> None:
    code = """
    w = torch.ones(4, 8, requires_grad=True)
    for step in range(6):
        h = w.exp()
        target = h.detach().clone() if step < 5 else h.data
        target[step % 4].mul_(2)
        h.sum().backward()
    """
    finding = the(code, "silent-gradient-corruption", tmp_path)
    assert rows(finding.memory[0]) == [SAVED]


def test_identical_findings_keep_the_first_picture(tmp_path: Path) -> None:
    code = """
    w = torch.ones(4, 8, requires_grad=True)
    for step in range(3):
        h = w.exp()
        h.data[step].mul_(2)
        h.sum().backward()
    """
    finding = the(code, "silent-gradient-corruption", tmp_path)
    assert finding.count == 3
    assert rows(finding.memory[0]) == [SAVED, ("written", 0, (8,), (4,))]


def test_what_is_written_and_read_at_once_is_drawn_apart(tmp_path: Path) -> None:
    code = "past = torch.arange(12.0).view(3, 4)\npast[:, 1:] = past[:, :-1]\n"
    finding = the(code, "overlapping-write", tmp_path)
    assert rows(finding.memory[0]) == [("written", 4, (3, 3), (16, 4)), ("read", 0, (3, 3), (16, 4))]


def test_a_write_that_meets_itself_shows_its_stride(tmp_path: Path) -> None:
    code = "windows = torch.arange(10.0).unfold(0, 4, 2)\nwindows -= windows.mean(dim=1, keepdim=True)\n"
    finding = the(code, "overlapping-write", tmp_path)
    assert rows(finding.memory[0]) == [("written", 0, (4, 4), (8, 4))]


def test_a_lost_write_shows_the_copy_and_what_stays_as_it_was(tmp_path: Path) -> None:
    finding = the("x = torch.arange(6.)\nx[x > 2].zero_()\n", "lost-write", tmp_path)
    copy, original = finding.memory
    assert (copy.nbytes, rows(copy)) == (12, [("written", 0, (3,), (4,))])
    assert (original.nbytes, rows(original)) == (24, [("unchanged", 0, (6,), (4,))])
    assert original.tensors[0].label == "x"


def test_two_names_of_one_memory_are_both_drawn(tmp_path: Path) -> None:
    code = """
    def mask(ids):
        labels = ids
        labels.masked_fill_(ids > 1, 0)
        return labels, ids + 1

    mask(torch.arange(4.))
    """
    finding = the(code, "write-through-alias", tmp_path)
    assert [tensor.label for tensor in finding.memory[0].tensors] == ["", "ids"]
    assert finding.memory[0].nbytes == 16


def test_a_save_shows_the_little_that_was_meant(tmp_path: Path) -> None:
    code = f"""
    table = torch.zeros(1000, 300)
    torch.save({{"row": table[7]}}, {str(tmp_path / "row.pt")!r})
    """
    finding = the(code, "serialization-bloat", tmp_path)
    assert finding.severity is not Severity.ERROR
    (memory,) = finding.memory
    assert (memory.nbytes, rows(memory)) == (1_200_000, [("saved", 8400, (300,), (4,))])


def test_a_refused_write_shows_the_view_and_its_base(tmp_path: Path) -> None:
    code = "w = torch.ones(3, 4, requires_grad=True)\nw[1].zero_()\n"
    finding = the(code, "leaf-inplace", tmp_path)
    assert rows(finding.memory[0]) == [("to", 16, (4,), (4,)), ("its", 0, (3, 4), (16, 4))]


def test_a_kept_reference_and_the_live_tensor_are_one_memory(tmp_path: Path) -> None:
    code = """
    model = nn.Linear(2, 2, bias=False)
    best = model.state_dict()
    with torch.no_grad():
        model.weight.add_(1)
    model.load_state_dict(best)
    """
    finding = the(code, "live-reference-snapshot", tmp_path)
    (memory,) = finding.memory
    assert [(tensor.role, tensor.label) for tensor in memory.tensors] == [
        ("kept", "weight"),
        ("live", "weight"),
    ]


def test_two_that_were_one_are_drawn_in_their_two_storages(tmp_path: Path) -> None:
    code = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("flat", torch.zeros(8))
            self.weight = nn.Parameter(self.flat[:6])

    twin = copy.deepcopy(Net())
    twin.flat.fill_(1)
    """
    finding = the(code, "tied-weights-broken", tmp_path)
    assert sorted(memory.nbytes for memory in finding.memory) == [24, 32]
