"""Several stacks of patches on one attribute, taken out in any order."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType

import pytest

from tensafe.runtime.patches import Patches


class Owner:
    def inherited(self) -> str:
        return "plain"


class Child(Owner):
    def own(self) -> str:
        return "plain"


def marking(mark: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
    return lambda call: lambda self: f"{mark}({call(self)})"


@pytest.mark.parametrize("name", ["own", "inherited"])
@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_layers_leave_in_any_order(name: str, order: tuple[str, ...]) -> None:
    before = dict(vars(Child))
    stacks = {mark: Patches() for mark in "abc"}
    for mark, stack in stacks.items():
        stack.wrap(Child, name, marking(mark))
    left = ["c", "b", "a"]
    for mark in order:
        stacks[mark].undo()
        left.remove(mark)
        expected = "".join(f"{one}(" for one in left) + "plain" + ")" * len(left)
        assert getattr(Child(), name)() == expected
    assert dict(vars(Child)) == before


def test_an_innermost_layer_is_wrapped_by_the_others() -> None:
    outer, inner = Patches(), Patches()
    outer.wrap(Child, "own", marking("outer"))
    inner.wrap(Child, "own", marking("inner"), innermost=True)
    assert Child().own() == "outer(inner(plain))"
    outer.undo()
    assert Child().own() == "inner(plain)"
    inner.undo()
    assert Child().own() == "plain"


def test_a_foreign_patch_on_top_goes_with_the_layer_below() -> None:
    owner = ModuleType("owner")
    owner.call = lambda: "plain"  # type: ignore[attr-defined]
    patches = Patches()
    patches.wrap(owner, "call", lambda call: lambda: f"ours({call()})")
    ours = owner.call
    owner.call = lambda: f"theirs({ours()})"
    patches.undo()
    assert owner.call() == "plain"


def test_a_foreign_patch_in_between_keeps_what_it_had() -> None:
    owner = ModuleType("owner")
    owner.call = lambda: "plain"  # type: ignore[attr-defined]
    below, above = Patches(), Patches()
    below.wrap(owner, "call", lambda call: lambda: f"below({call()})")
    inner = owner.call
    owner.call = lambda: f"theirs({inner()})"
    above.wrap(owner, "call", lambda call: lambda: f"above({call()})")
    below.undo()
    assert owner.call() == "above(theirs(below(plain)))"
    above.undo()
    assert owner.call() == "theirs(below(plain))"


def test_a_replaced_classmethod_under_a_wrapper() -> None:
    class Made:
        @classmethod
        def make(cls) -> str:
            return cls.__name__

    below, above = Patches(), Patches()
    below.replace(Made, "make", classmethod(lambda cls: f"replaced {cls.__name__}"))
    above.wrap(Made, "make", lambda call: staticmethod(lambda: f"above({call()})"))
    assert Made.make() == "above(replaced Made)"
    below.undo()
    assert Made.make() == "above(Made)"
    above.undo()
    assert Made.make() == "Made"
