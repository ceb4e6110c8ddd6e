"""A write that another name of the same tensor sees is not turned into one that it does not see."""

from __future__ import annotations

import pytest

from fixes.places import assert_fixed, assert_refused, finding_with, site_of
from tensafe.findings import CallInstead, Finding, OutOfPlace, Wrap
from tensafe.fixes import apply


@pytest.mark.parametrize(
    "head",
    [
        "alias = g",
        "alias = g.view(-1)",
        "alias = g.T",
        "alias = other = g",
        "alias: object = g",
        "one, alias = 1, g",
        "alias = h if c else g",
        "alias = c or g",
        "middle = g; alias = middle",
        "alias = g = f()",
        "if c:\n        alias = g\n    else:\n        alias = 1",
        "print(alias := g)",
    ],
)
@pytest.mark.parametrize("words", ["g.mul_(2).add_(1)", "g *= 2", "torch.relu_(g)"])
def test_another_name_read_later_is_refused(head: str, words: str) -> None:
    source = f"def f(g, h, c):\n    {head}\n    {words}\n    return alias, g\n"
    assert_refused(source, OutOfPlace(site_of(source, words)), "`alias` is the same tensor")


def test_what_others_may_read_is_refused() -> None:
    source = "def f(self, g):\n    self.kept = g\n    g *= 2\n    return g\n"
    assert_refused(source, OutOfPlace(site_of(source, "g *= 2")), "`self.kept` is the same tensor")


def test_a_name_from_the_round_before_is_refused() -> None:
    source = "def f(g, n):\n    for _ in n:\n        g *= 2\n        alias = g\n    return alias\n"
    assert_refused(source, OutOfPlace(site_of(source, "g *= 2")), "`alias` is the same tensor")


@pytest.mark.parametrize(
    "source",
    [
        "def f(g):\n    alias = g\n    g *= 2\n    return g\n",
        "def f(g):\n    alias = g\n    g = g + 1\n    g *= 2\n    return alias, g\n",
        "def f(g):\n    alias = g\n    alias = alias + 1\n    g *= 2\n    return alias, g\n",
        "def f(g):\n    alias = g.exp()\n    g *= 2\n    return alias, g\n",
        "def f(g):\n    g *= 2\n    alias = g\n    return alias, g\n",
        "def f(g):\n    x = g\n    h = l(x)\n    h = h + 1\n    g = h.exp()\n    g *= 2\n    return x, g\n",
    ],
)
def test_another_object_or_an_unread_name_is_none(source: str) -> None:
    assert_fixed(source, OutOfPlace(site_of(source, "g *= 2")), source.replace("g *= 2", "g = g * 2"))


LOOP = "def f(n):\n    gs = [l(i) for i in n]\n    for {}:\n        g *= 2\n        h = g\n    return {}\n"


@pytest.mark.parametrize(
    "head",
    [
        "g in gs",
        "g in reversed(gs[:-1])",
        "i, g in enumerate(gs)",
        "g, k in zip(gs, n)",
        "k, g in zip(n, list(gs))",
    ],
)
def test_an_element_of_a_list_read_later_is_refused(head: str) -> None:
    source = LOOP.format(head, "gs")
    assert_refused(source, OutOfPlace(site_of(source, "g *= 2")), "`gs` holds the same tensor")
    for other in (LOOP.format(head, "h"), source.replace("gs = [l(i) for i in n]", "gs = load(n)")):
        assert_fixed(other, OutOfPlace(site_of(other, "g *= 2")), other.replace("g *= 2", "g = g * 2"))


def test_another_loop_over_the_list_is_none() -> None:
    source = LOOP.format("g in map(l, gs)", "gs")
    assert_fixed(source, OutOfPlace(site_of(source, "g *= 2")), source.replace("g *= 2", "g = g * 2"))


def test_thousands_of_bindings_of_two_names_take_seconds() -> None:
    import time

    source = "".join(f"h = w.exp()\nk = h\nh *= {number}\nprint(h)\n" for number in range(1500))
    actions = [OutOfPlace(site_of(source, f"h *= {number}\n".strip())) for number in range(1000, 1500)]
    begun = time.perf_counter()
    assert apply(source, list(map(finding_with, actions)), unsafe=True).applied == 500
    assert time.perf_counter() - begun < 10


def _many() -> tuple[str, list[Finding]]:
    actions = []
    source = ""
    for number in range(750):
        lines = [f"x{number} += y", f"k{number} = f{number}()", "z.mul_(2)"]
        lines.append(f"t{number} = torch.tensor(l{number}, requires_grad=True)")
        source += f"l{number} = []; l{number}.append(y)\n" + "\n".join(lines) + f"\nprint(x{number}, z)\n"
    source = "import torch\n" + source
    for number in range(750):
        actions.append(OutOfPlace(site_of(source, f"x{number} += y")))
        actions.append(Wrap(site_of(source, f"f{number}()"), "copy.deepcopy({})", ("copy",)))
        call = f"torch.tensor(l{number}, requires_grad=True)"
        actions.append(CallInstead(site_of(source, call), "torch.stack", True))
    return source, [finding_with(action) for action in actions]


def test_thousands_of_fixes_take_seconds() -> None:
    import time

    source, findings = _many()
    begun = time.perf_counter()
    result = apply(source, findings, unsafe=True)
    assert time.perf_counter() - begun < 10
    for words in ("= copy.deepcopy(f", "= torch.stack(l", " + y"):
        assert result.text.count(words) == 750
