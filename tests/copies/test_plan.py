"""`plan`: says beforehand what a copy takes, and touches nothing."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given, settings
from torch import nn

import tensafe
from copies.objects import Tree, trees
from copies.twins import tensors_in


def storage_nbytes(root: Any) -> int:
    """Bytes of all storages of the strided tensors in an object, each once."""
    tensors = [x for x in tensors_in(root) if x.layout is torch.strided]
    return sum({x.untyped_storage()._cdata: x.untyped_storage().nbytes() for x in tensors}.values())


@given(trees())
@settings(max_examples=100)
def test_it_says_what_the_copies_take(tree: Tree) -> None:
    assert tensafe.plan(tree.root).nbytes == storage_nbytes(tensafe.deepcopy(tree.root))
    assert tensafe.plan(tree.root, compact=True).nbytes == storage_nbytes(tensafe.compact(tree.root))


def test_it_prints_storages_and_views() -> None:
    base = torch.zeros(100)
    batch = {"whole": base, "part": [base[10:20]], "sparse": torch.eye(2).to_sparse()}
    assert str(tensafe.plan(batch)).splitlines() == [
        "3 tensors in 1 storage, 440 bytes to copy",
        "  400 bytes on cpu",
        '    batch["whole"]: float32 [100], bytes 0 to 400',
        '    batch["part"][0]: float32 [10], bytes 40 to 80',
        '  by its own method: batch["sparse"]: float32 [2, 2], bytes 0 to 40',
    ]
    assert repr(tensafe.plan(batch)) == str(tensafe.plan(batch))
    part = [base[10:20]]
    assert str(tensafe.plan(part, compact=True)).splitlines() == [
        "1 tensor in 1 storage, 40 bytes to copy",
        "  40 of 400 bytes on cpu",
        "    part[0]: float32 [10], bytes 0 to 40",
    ]


def test_equal_objects_have_equal_plans_and_ties_have_two_names() -> None:
    def tied() -> nn.Sequential:
        model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
        model[1].weight = model[0].weight
        return model

    model = tied()
    before = tensafe.plan(model)
    model = tied()
    assert tensafe.plan(model) == before
    assert before.storages[0].views[0].names == ("model[0].weight", "model[1].weight")


def test_it_runs_no_code_of_the_object() -> None:
    class Trap:
        def __init__(self) -> None:
            self.held = torch.ones(2)

        def __deepcopy__(self, memo: Any) -> Any:
            raise AssertionError

        def __reduce_ex__(self, protocol: Any) -> Any:
            raise AssertionError

    assert tensafe.plan([Trap()]).view_count == 1
