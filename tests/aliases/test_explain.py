"""What `explain` says of one tensor, against what PyTorch and NumPy say when asked themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn

import tensafe
from tensafe import TensafeError, explain


def relations(found: tensafe.look.Explanation) -> dict[str, str]:
    return {alias.name: alias.relation for alias in found.aliases}


def test_where_a_slice_lies() -> None:
    table = torch.zeros(250)
    sample = table[10:20]
    found = explain(sample)
    (region,) = found.regions
    assert found.names == ("sample",)
    assert (region.extent.start, region.extent.stop) == (40, 80)
    assert (region.storage_nbytes, region.viewed_nbytes, region.unviewed_nbytes) == (1000, 40, 960)
    assert region.fraction == 0.04
    assert region.storage == "the storage of `table`"
    assert found.base == "table"
    assert [alias.name for alias in found.aliases if alias.is_base] == ["table"]


def test_how_others_lie_to_it() -> None:
    whole = torch.zeros(12)
    x = whole[2:8]
    same, inside, beside, across = x.detach(), whole[3:5], whole[8:], whole[6:10]
    even = whole.view(torch.int32)[3:7:2]
    assert relations(explain(x)) == {
        "whole": "contains it",
        "same": "the same bytes",
        "inside": "inside it",
        "beside": "no common byte",
        "across": "overlaps it",
        "even": "inside it",
    }
    assert [len(other) for other in (same, inside, beside, across, even)] == [6, 2, 4, 4, 2]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(1, 4), st.integers(0, 6)), min_size=2, max_size=2))
def test_relations_are_those_of_sets_of_elements(slices: list[tuple[int, int, int]]) -> None:
    whole = torch.arange(12)
    x, other = (whole[start::step][:length] for start, step, length in slices)
    own, others = set(x.tolist()), set(other.tolist())
    relation = relations(explain(x))["other"]
    if not own & others:
        assert relation == "no common byte"
    elif own == others:
        assert relation == "the same bytes"
    elif own < others:
        assert relation == "contains it"
    else:
        assert relation == ("inside it" if own > others else "overlaps it")


def test_tensors_without_a_name_are_counted() -> None:
    x = torch.zeros(4)
    hidden = (lambda kept: lambda: kept)([x[1:], x.detach()])
    found = explain(x)
    assert not found.aliases
    assert len(found.unnamed_aliases) == 2
    assert len(hidden()) == 2


def test_aliases_in_modules_containers_and_callers() -> None:
    def inner(row: Tensor, layer: str) -> dict[str, str]:
        assert layer
        return relations(explain(row))

    layer = nn.Linear(3, 3)
    backup = {"best": layer.state_dict()}
    seen = inner(layer.weight.detach()[0], "another object of that name")
    assert seen["test_aliases_in_modules_containers_and_callers: layer.weight"] == "contains it"
    assert seen['backup["best"]["weight"]'] == "contains it"
    assert backup


def test_arrays_and_tensors_over_one_buffer() -> None:
    array = np.zeros((4, 4))
    tensor = torch.from_numpy(array)
    found = explain(tensor)
    assert relations(found) == {"array": "the same bytes"}
    assert [caution.code for caution in found.cautions] == ["numpy"]
    back = explain(array)
    assert relations(back) == {"tensor": "the same bytes"}
    assert back.is_array
    assert back.view_as(-1)
    assert not explain(array.T).view_as(-1)


@pytest.mark.parametrize(
    ("make", "may_write"),
    [
        (lambda: np.zeros(4), True),
        (lambda: np.zeros((4, 4))[::2, ::-1], True),
        (lambda: np.broadcast_to(np.zeros(4), (3, 4)), False),
        (lambda: np.frombuffer(b"abcd", dtype=np.uint8), False),
        (lambda: np.lib.stride_tricks.as_strided(np.zeros(6), (4, 3), (8, 8)), False),
    ],
)
def test_may_an_array_be_written(make: Any, may_write: bool) -> None:
    array = make()
    assert explain(array).may_write == may_write
    expected = array.copy() + 1 + np.arange(array.size).reshape(array.shape)
    try:
        array[...] = expected
        done = bool((array == expected).all())
    except ValueError:
        done = False
    assert done == may_write


def test_an_array_that_a_graph_saved() -> None:
    weight = torch.ones(3, requires_grad=True)
    array = np.ones(3, dtype=np.float32)
    loss = (weight * torch.from_numpy(array)).sum()
    assert [reason.code for reason in explain(array).reasons] == ["saved, uncounted"]
    array *= 5
    loss.backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [5, 5, 5]  # silently wrong, as said


def test_a_tensor_over_read_only_memory() -> None:
    data = np.frombuffer(b"12345678", dtype=np.uint8)
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # some other test may have made torch say it already
    try:
        with pytest.warns(UserWarning, match="not writable"):
            tensor = torch.from_numpy(data)
    finally:
        torch.set_warn_always(before)
    assert [reason.code for reason in explain(tensor).reasons] == ["read-only array behind"]


MAPPED = """
import sys, warnings, numpy as np, torch, tensafe
warnings.simplefilter("ignore")
np.save(sys.argv[1], np.zeros(4096))
x = torch.from_numpy(np.load(sys.argv[1], mmap_mode="r"))
print([reason.code for reason in tensafe.explain(x).reasons], flush=True)
x[0] = 1
"""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells how memory is mapped")
def test_a_tensor_over_a_file_mapped_read_only(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAPPED, str(tmp_path / "numbers.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("['read-only mapping'"), done.stdout + done.stderr
    assert done.returncode < 0  # the write ended the process


def test_a_file_mapped_for_writing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "numbers.bin"
    path.write_bytes(bytes(8192))
    x = torch.from_file(str(path), shared=True, size=2048, dtype=torch.float32)
    found = explain(x)
    assert found.may_write
    assert [caution.code for caution in found.cautions if str(path) in caution.says] == ["mapped file"]
    x[0] = 1
    assert path.read_bytes()[:4] != bytes(4)


def test_graph_state() -> None:
    leaf = torch.ones(3, requires_grad=True)
    y = leaf.exp()
    z = (y * leaf).sum()
    found = explain(y)
    assert (found.requires_grad, found.is_leaf, found.grad_fn, found.version) == (
        True,
        False,
        "ExpBackward0",
        0,
    )
    by = {(saved.node, saved.argument): saved.path for saved in found.saved_by}
    assert by == {
        ("ExpBackward0", "result"): ("y", "ExpBackward0"),
        ("MulBackward0", "self"): ("z", "SumBackward0", "MulBackward0"),
    }
    z.backward()
    assert explain(y).saved_by == ()
    y.detach().add_(1)
    assert explain(y).version == 1


def test_a_parameter_that_an_optimizer_holds_and_that_is_tied() -> None:
    model = nn.ModuleDict({"embed": nn.Embedding(4, 3), "head": nn.Linear(3, 4, bias=False)})
    model["head"].weight = model["embed"].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.no_grad():
        found = explain(model["head"].weight)
    assert found.may_write
    assert {caution.code for caution in found.cautions} == {"optimizer", "tied"}
    assert found.names == ("model.head.weight", "model.embed.weight")
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.eye(3).to_sparse(), "sparse_coo"),
        (lambda: torch.empty(3, device="meta"), "meta"),
        (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "quantised"),
        (lambda: torch.ones(3, dtype=torch.complex64).conj(), "conjugated"),
        (lambda: torch.ones(3, dtype=torch.complex64).conj().imag, "negated"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "values"),
        (lambda: torch.tensor(1.0), r"float32 \[\]"),
        (lambda: torch.empty(0, 3), r"0 bytes"),
        (lambda: np.zeros(3, dtype=[("a", "f4"), ("b", "i8")]), "36 bytes"),
        (lambda: np.ma.masked_array(np.ones(3), mask=[1, 0, 0]), "mask"),
    ],
)
def test_special_tensors(make: Any, words: str) -> None:
    special = make()
    assert re.search(words, str(explain(special)))


@pytest.mark.parametrize(
    "wrong", [[torch.ones(3)], 3, None, "x", nn.Linear(2, 2), torch.float32, torch.Tensor]
)
def test_anything_else_is_refused_in_one_line(wrong: object) -> None:
    with pytest.raises(
        TensafeError, match=r"^explain\(\) takes a tensor or a NumPy array, not .+$"
    ) as raised:
        explain(wrong)
    assert "\n" not in str(raised.value)


@settings(max_examples=40)
@given(st.data())
def test_views_are_those_that_pytorch_gives(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    x = torch.zeros(sizes).permute(data.draw(st.permutations(range(len(sizes)))))
    x = x.narrow(0, 0, data.draw(st.integers(1, x.size(0))))
    target = data.draw(st.permutations([*data.draw(st.sampled_from([[-1], [1, -1], [2, -1], [2, 2, -1]]))]))
    answer = explain(x).view_as(*target)
    try:
        view = x.view(target)
    except RuntimeError:
        assert not answer
    else:
        assert answer.shape == view.shape
        assert [s for s, n in zip(answer.strides or (), view.shape, strict=True) if n > 1] == [
            s for s, n in zip(view.stride(), view.shape, strict=True) if n > 1
        ]
