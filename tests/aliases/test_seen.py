"""What cannot be counted, owned, named or traced: seen where that is possible, and said where it is not."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import tensafe
from tensafe import TensafeError, explain, memory_map
from tensafe.report.memory_text import memory_text


def codes(found: tensafe.look.Explanation) -> set[str]:
    return {reason.code for reason in (*found.reasons, *found.cautions)}


def too_many_to_count() -> list[Tensor]:
    """Two tensors with 300,000 runs of bytes each, which reach into each other."""
    whole = torch.empty(4_000_000, dtype=torch.uint8)
    return [whole[start::3][:300_000].as_strided((300_000, 2), (11, 1), start) for start in (0, 1)]


def test_a_bound_is_not_shown_as_a_count() -> None:
    parts = too_many_to_count()
    found = memory_map(parts)
    assert not found.storages[0].covered.exact
    shown = memory_text(found, 120)
    assert "at least" in next(line for line in shown.splitlines() if line.startswith("  dead"))
    assert "at most" in next(line for line in shown.splitlines() if line.startswith("  shared"))
    assert "at least" in next(line for line in shown.splitlines() if "]" in line)


def test_a_count_is_not_shown_as_a_bound() -> None:
    whole = torch.zeros(1000)
    shown = str(memory_map(whole[:10], whole[5:20]))
    assert "at most" not in shown
    assert "at least" not in shown


def test_an_extent_that_cannot_be_counted() -> None:
    x = torch.zeros(3_000_000).as_strided((1000, 1000), (1001, 1000))
    found = explain(x)
    assert not found.regions[0].is_exact
    assert "at most" in str(found)


def test_arguments_of_a_checkpoint() -> None:
    weight = torch.ones(3, requires_grad=True)
    p, other = torch.ones(3), torch.ones(3)
    loss = checkpoint(lambda x: (x * weight).exp(), p, use_reentrant=False).sum()
    found = explain(p)
    assert found.not_seen, "at least said"
    if not any("hooks" in note for note in found.not_seen):  # torch before 2.13 shows nothing of hooks
        assert codes(found) == {"saved for backward"}
        assert explain(other).may_write
        p.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            loss.backward()


def test_a_write_to_immutable_bytes() -> None:
    x = torch.frombuffer(bytes([1, 2, 3, 250]) * 4, dtype=torch.uint8)
    assert codes(explain(x)) >= ({"immutable bytes"} if sys.platform == "linux" else {"foreign memory"})
    assert not explain(x).may_write or sys.platform != "linux"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: torch.frombuffer(bytearray(16), dtype=torch.uint8), {"foreign memory"}),
        (lambda: torch.from_numpy(np.ones(4)), {"foreign memory"}),
        (lambda: torch.from_dlpack(np.ones(4)), {"foreign memory"}),
        (lambda: torch.ones(4), set()),
        (lambda: torch.ones(4).share_memory_(), {"shared memory"}),
        (lambda: torch.empty(0), set()),
    ],
)
def test_memory_that_pytorch_did_not_allocate(make: Any, code: set[str]) -> None:
    x = make()
    assert codes(explain(x)) == code
    assert explain(x).may_write


def test_metaclasses_do_not_run() -> None:
    ran: list[str] = []

    def tell(name: str) -> Any:
        return lambda *_: ran.append(name) or NotImplemented

    names = ["__eq__", "__hash__", "__getattribute__", "__instancecheck__", "__subclasscheck__", "__bool__"]
    hostile: Any = type("Hostile", (type,), {name: tell(name) for name in names})
    kind = type.__call__(hostile, "Kind", (), {})
    listed = type.__call__(hostile, "Listed", (list,), {})
    thing, row = type.__call__(kind), type.__call__(listed)
    thing.held = torch.ones(2)
    list.append(row, torch.ones(3))
    found, one = memory_map(thing, row), explain(thing.held)
    assert ran == []
    assert {tensor.name for storage in found.storages for tensor in storage.tensors} == {
        "thing.held",
        "row[0]",
    }
    assert one.names == ("thing.held",)


class Unhashable(type):
    """Types that nobody can hash."""

    def __eq__(cls, other: object) -> bool:
        return NotImplemented


def test_types_that_cannot_be_hashed() -> None:
    thing = Unhashable("Kind", (), {})()
    thing.held = torch.ones(2)  # type: ignore[attr-defined]
    assert "thing.held" in str(memory_map(thing))
    assert explain(thing.held).may_write  # type: ignore[attr-defined]


def ties(parameter: Tensor) -> str:
    with torch.no_grad():
        return " ".join(caution.says for caution in explain(parameter).cautions if caution.code == "tied")


def test_two_ways_to_one_module_are_no_tie() -> None:
    net = nn.Module()
    net.enc = nn.ModuleDict({"l": nn.Linear(2, 2)})
    net.shortcut = net.enc
    assert ties(net.enc["l"].weight) == ""
    net.head = nn.Linear(2, 2)
    net.head.weight = net.enc["l"].weight
    assert "net.head.weight" in ties(net.head.weight)


def test_two_names_in_one_module_are_a_tie() -> None:
    net = nn.Linear(2, 2)
    net.again = net.weight
    assert ties(net.weight) == "It is tied: `net.weight`, `net.again` are this one tensor."


def test_books_of_torch_are_no_names() -> None:
    lstm = nn.LSTM(2, 2)
    assert explain(lstm.weight_ih_l0).names == ("lstm.weight_ih_l0",)
    assert not memory_map(lstm).ties


def test_a_title_of_long_names_stays_short() -> None:
    layer = nn.Linear(2, 2)
    first, second = {"a key that is rather long, so that names are": layer}, {"another long, long key": layer}
    title, also = str(explain(layer.weight)).splitlines()[:2]
    assert title == "layer.weight:  float32 [2, 2] on cpu, torch.nn.Parameter"
    assert also.startswith('  also      second["another long, long key"].weight, ')
    assert [*first.values(), *second.values()] == [layer, layer]


COMPILED = """
import sys, warnings
warnings.simplefilter("error", UserWarning)
import torch, tensafe
def step(x):
    y = x * 2
    explained = tensafe.explain(y)
    mapped = tensafe.memory_map(y)
    shown = str(tensafe.explain(x))
    return y + 1, explained, mapped, shown
y, explained, mapped, shown = torch.compile(step, backend="eager")(torch.ones(2))
print(y.tolist(), explained.may_write, len(mapped.storages), "float32" in shown)
"""


def test_torch_compile_traces_nothing_of_ours() -> None:
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[3.0, 3.0] True 1 True\n", "")


def test_symbolic_sizes_do_not_break_a_look() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

    sizes: Any = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * 2)
    environment = ShapeEnv()
    x = FakeTensorMode(shape_env=environment).from_tensor(torch.ones(5, 7), symbolic_context=sizes)
    with pytest.raises(TensafeError, match="symbolic"):
        explain(x)
    assert [note for note in memory_map(x).not_seen if note.startswith("`x`")]
    assert explain(torch.ones(2)).may_write
    assert not environment.guards  # nothing was fixed by asking


def test_advice_is_python() -> None:
    net = nn.Sequential(nn.Sequential(nn.Linear(3, 3)))
    windows = np.lib.stride_tricks.as_strided(np.zeros(6), (4, 3), (8, 8))
    assert "net[0][0].weight.clone()" in explain(net[0][0].weight).reasons[0].instead
    assert "windows.copy()" in explain(windows).reasons[0].instead
    assert "clone" not in " ".join(map(str, explain(windows).reasons))


def test_deepcopy_of_a_slice_that_is_no_leaf() -> None:
    weight = torch.ones(10, requires_grad=True)
    assert "deepcopy raises" in str(explain(weight[:2]))
    assert "deepcopy write" in str(explain(weight.detach()[:2]))


def test_what_an_array_is_a_view_of() -> None:
    assert explain(np.ones((3, 4))[1:]).base == "an array without a name"
    assert explain(np.frombuffer(bytearray(8), dtype=np.uint8)).base == "a bytearray"


@pytest.mark.parametrize("view", [lambda x: x.conj(), lambda x: x.expand(2, 3), lambda x: x[1:]])
def test_a_base_that_only_its_view_holds(view: Any) -> None:
    alone = view(torch.ones(3, dtype=torch.complex64))
    base = torch.ones(3, dtype=torch.complex64)
    held = (lambda kept: lambda: kept)([base])
    beside = view(base)
    del base
    assert explain(alone).unnamed_aliases == ()
    assert len(explain(beside).unnamed_aliases) == 1
    assert len(held()) == 1


def test_one_sample_inside_vmap() -> None:
    found: list[tensafe.look.Explanation] = []

    def look(x: Tensor) -> Tensor:
        found.append(explain(x))
        return x

    torch.vmap(look)(torch.ones(3, 4))
    assert (found[0].shape, found[0].strides) == ((4,), (1,))


def test_names_are_sorted_as_people_count() -> None:
    whole = torch.zeros(40)
    parts = [whole[place : place + 1] for place in range(12)]
    names = [alias.name for alias in explain(whole).aliases]
    assert names == [f"parts[{place}]" for place in range(len(parts))]


def test_a_map_says_that_it_leaves_out_graphs() -> None:
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * 2).exp()
    assert [note for note in memory_map(loss).not_seen if "`loss`" in note]
    assert not memory_map(weight, weight.detach()).not_seen


def test_saved_by_names_the_tensor_that_leads_there() -> None:
    weight = torch.ones(3, requires_grad=True)
    y = weight * 2
    hidden = (lambda kept: lambda: kept)(y.exp())
    loss = hidden().sin().sum()
    found = explain(hidden())
    assert {saved.path[0] for saved in found.saved_by} == {"loss"}
    assert len(loss.shape) == 0


def test_items_without_names_are_told() -> None:
    many = [torch.zeros(1)] * 10_005
    many[10_003] = last = torch.zeros(2)
    numbers = list(range(10_005))
    found = explain(last[:1])
    assert [note for note in found.not_seen if "many" in note]
    assert not [note for note in found.not_seen if "numbers" in note]
    assert numbers
