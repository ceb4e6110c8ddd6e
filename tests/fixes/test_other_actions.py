"""Index assignments, wrapped expressions, replaced functions, keywords: done exactly, or refused."""

from __future__ import annotations

import pytest

from fixes.places import assert_fixed, assert_refused, fixed, site_of
from tensafe.findings import AssignThroughIndex, CallInstead, DropCall, SetKeyword, Site, Wrap
from tensafe.findings.source import split_lines

DEEP = "copy.deepcopy({})"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x[mask].fill_(v)", "x[mask] = v"),
        ("x[mask].zero_()", "x[mask] = 0"),
        ("self.x[mask].fill_(value=1.0)", "self.x[mask] = 1.0"),
        ("x[0][mask].zero_()", "x[0][mask] = 0"),
        ("x[..., -1, 1:3][mask].zero_()", "x[..., -1, 1:3][mask] = 0"),
        ('state["w"][mask].zero_()', 'state["w"][mask] = 0'),
        ("x.view(-1)[mask].zero_()", "x.view(-1)[mask] = 0"),
        ("x.data[mask].fill_((a + b),)", "x.data[mask] = a + b"),
        ("x[mask].fill_(\n    a\n    + b\n)", "x[mask] = (a\n    + b)"),
        ("x[mask].fill_(a if c else b)", "x[mask] = a if c else b"),
    ],
)
def test_assigned_through_the_index(before: str, after: str) -> None:
    assert_fixed(f"{before}  # é\r\n", AssignThroughIndex(site_of(before, before)), f"{after}  # é\r\n")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("x[i][mask].zero_()", "may itself be a copy"),
        ("x[mask][:, 1].zero_()", "may itself be a copy"),
        ("x[[0, 2]][0].fill_(1)", "may itself be a copy"),
        ("x[True][0].fill_(1)", "may itself be a copy"),
        ("x.flatten()[mask].zero_()", "may itself be a copy"),
        ("x[a].add_(y)", "without knowing shapes"),
        ("x[a].copy_(y)", "without knowing shapes"),
        ("x[a][b] = v", "without knowing shapes"),
        ("x[a][b] += v", "without knowing shapes"),
        ("x.zero_()", "without knowing shapes"),
        ("y = x[a].fill_(v)", "the result of the call is used"),
        ("x[a].fill_(v).add_(1)", "the result of the call is used"),
        ("x[a].fill_(*v)", "not a plain value"),
        ("x[a].fill_(v := 1)", "not a plain value"),
        ("x[a].fill_()", "without knowing shapes"),
        ("x[a].fill_(  # why\n    v)", "a comment"),
        ("(x[a].zero_())", "parenthesis"),
    ],
)
def test_not_assigned_through_the_index(source: str, why: str) -> None:
    words = source if not source.startswith("y = ") else "x[a].fill_(v)"
    words = "x[a].fill_(v)" if "add_(1)" in source else words
    words = words.strip("()") if words.startswith("(") else words
    words += ")" if words.endswith("zero_(") else ""
    assert_refused(source, AssignThroughIndex(site_of(source, words)), why)


@pytest.mark.parametrize(
    ("head", "new_head"),
    [
        ("", "import copy\n\n"),
        ("import copy\n", "import copy\n"),
        ("import torch\n", "import copy\nimport torch\n"),
        ("import ast\nimport os\nimport torch\n", "import ast\nimport copy\nimport os\nimport torch\n"),
        ("import argparse\n\nimport torch\n", "import argparse\n\nimport copy\nimport torch\n"),
        ("import argparse\n", "import argparse\nimport copy\n"),
        ("from os import path\n", "import copy\nfrom os import path\n"),
        ('"""Doc."""\n', '"""Doc."""\n\nimport copy\n'),
        ('"""Doc."""\nfrom __future__ import annotations\n\nimport torch\n',
         '"""Doc."""\nfrom __future__ import annotations\n\nimport copy\nimport torch\n'),
        ("from __future__ import annotations\n", "from __future__ import annotations\n\nimport copy\n"),
        ("#!/usr/bin/env python\n# licence\n\n", "#!/usr/bin/env python\n# licence\n\nimport copy\n\n"),
        ("import copy as c\n", "import copy as c\nimport copy\n"),
        ("import torch\nif TYPE_CHECKING:\n    import copy\n",
         "import copy\nimport torch\nif TYPE_CHECKING:\n    import copy\n"),
        ("def f():\n    import copy\n", "import copy\n\ndef f():\n    import copy\n"),
        ("def f(copy):\n    return copy\n", "import copy\n\ndef f(copy):\n    return copy\n"),
    ],
)  # fmt: skip
def test_wrapped_with_its_import(head: str, new_head: str) -> None:
    line = "best = model.state_dict()\n"
    action = Wrap(site_of(head + line, "model.state_dict()"), DEEP, imports=("copy",))
    assert_fixed(head + line, action, f"{new_head}best = copy.deepcopy(model.state_dict())\n")


def test_windows_line_ends_reach_the_import_too() -> None:
    source = "import torch\r\nbest = model.state_dict()\r\n"
    action = Wrap(site_of(source, "model.state_dict()"), DEEP, imports=("copy",))
    assert_fixed(
        source, action, "import copy\r\nimport torch\r\nbest = copy.deepcopy(model.state_dict())\r\n"
    )


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("from copy import copy\nbest = f()\n", "means something else"),
        ("copy = 1\nbest = f()\n", "means something else"),
        ("def g(copy):\n    best = f()\n", "means something else"),
        ("import shutil as copy\nbest = f()\n", "means something else"),
        ("def copy(): pass\nbest = f()\n", "means something else"),
        ("def g():\n    best = f()\n    import copy\n", "comes later"),
        ('"""Doc."""; best = f()\n', "no line of its own"),
        ("best = h(f() for x in y)\n", "not a plain value"),
    ],
)
def test_not_wrapped(source: str, why: str) -> None:
    words = "(f() for x in y)" if "for x" in source else "f()"
    assert_refused(source, Wrap(site_of(source, words), DEEP, imports=("copy",)), why)


def test_wrapped_inside_a_function_that_imports_it() -> None:
    source = "def g():\n    import copy\n    best = f()\n"
    action = Wrap(site_of(source, "f()"), DEEP, imports=("copy",))
    assert_fixed(source, action, source.replace("f()", "copy.deepcopy(f())"))


def test_a_template_without_brackets_gets_them() -> None:
    action = Wrap(site_of("y = a + b\n", "a + b"), "{}.clone()")
    assert_fixed("y = a + b\n", action, "y = (a + b).clone()\n")


def test_a_line_without_columns_is_wrapped_when_it_has_one_call() -> None:
    assert_fixed("best = f()\n", Wrap(Site("/p", 1), "g({})"), "best = g(f())\n")
    assert_refused("best = f(h())\n", Wrap(Site("/p", 1), "g({})"), "cannot be told apart")


def test_two_wraps_share_their_import() -> None:
    source = "a = f()\nb = g()\n"
    actions = [Wrap(site_of(source, words), DEEP, imports=("copy",)) for words in ("f()", "g()")]
    result = fixed(source, *actions)
    assert result.text == "import copy\n\na = copy.deepcopy(f())\nb = copy.deepcopy(g())\n"
    assert result.applied == 2


TENSOR = "torch.tensor(losses, requires_grad=True)"


@pytest.mark.parametrize(
    ("head", "before", "after"),
    [
        ("losses = [f(x) for x in y]\n", TENSOR, "torch.stack(losses)"),
        ("losses = []\nlosses.append(f(x))\n", TENSOR, "torch.stack(losses)"),
        ("losses = []\nlosses.append(f(x))\n", "torch.tensor(losses)", "torch.stack(losses)"),
        ("", "torch.tensor([a, b], requires_grad=True)", "torch.stack([a, b])"),
        ("", "torch.tensor([f(x) for x in y])", "torch.stack([f(x) for x in y])"),
        ("", "torch.tensor(([a, b]), requires_grad=True)", "torch.stack(([a, b]))"),
        (
            "self.losses = []\nself.losses.append(a)\n",
            "torch.tensor(self.losses)",
            "torch.stack(self.losses)",
        ),
        ("import torch as th\n", "th.tensor([a, b])", "th.stack([a, b])"),
        ("from torch import tensor\n", "tensor([a, b])", "torch.stack([a, b])"),
    ],
)
def test_another_function_called(head: str, before: str, after: str) -> None:
    source = f"import torch\n{head}loss = {before}.mean()\n"
    expected = f"import torch\n{head}loss = {after}.mean()\n"
    assert_fixed(source, CallInstead(site_of(source, before), "torch.stack"), expected)


@pytest.mark.parametrize(
    ("head", "call", "why"),
    [
        ("", "torch.tensor(loss)", "not seen to be a list"),
        ("", "torch.tensor(loss.item())", "not seen to be a list"),
        ("loss = f(x)\n", "torch.tensor(f(x))", "not seen to be a list"),
        ("", "torch.tensor([])", "not seen to be a list"),
        ("", "torch.tensor([1.0, 2.0])", "holds numbers"),
        ("", "torch.tensor([[a, b], [c, d]])", "holds numbers"),
        ("", "torch.tensor([float(x) for x in y])", "holds numbers"),
        ("losses = []\nlosses.append(a.item())\n", "torch.tensor(losses)", "holds numbers"),
        ("", "torch.tensor([a, b], dtype=torch.float64)", "`dtype` would be dropped"),
        ("", "torch.tensor([a, b], **kw)", "would be dropped"),
        ("", "torch.tensor(*a)", "one positional argument"),
        ("", "torch.tensor(data=[a])", "one positional argument"),
        ("", "torch.tensor([a, b],  # why\n    requires_grad=True)", "a comment"),
    ],
)
def test_no_other_function_called(head: str, call: str, why: str) -> None:
    source = f"import torch\n{head}loss = {call}\n"
    assert_refused(source, CallInstead(site_of(source, call), "torch.stack"), why)


def test_a_single_tensor_is_not_stacked() -> None:
    source = "import torch\nlosses = f(x)\nloss = torch.tensor(losses)\n"
    assert_refused(
        source, CallInstead(site_of(source, "torch.tensor(losses)"), "torch.stack"), "not seen to be a list"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a)", "f(a, k=1)"),
        ("f()", "f(k=1)"),
        ("f(a, k=2)", "f(a, k=1)"),
        ("f(a, k=2, j=3)", "f(a, k=1, j=3)"),
        ("f((a))", "f((a), k=1)"),
        ("f(a, )", "f(a, k=1 )"),
        ("f(g(),)", "f(g(), k=1)"),
        ("f(\n    a,\n)", "f(\n    a,\n    k=1,\n)"),
        ("f(\n    a\n)", "f(\n    a, k=1\n)"),
        ("f(a  # é, )\n)", "f(a, k=1  # é, )\n)"),
        ("f(*a)", "f(*a, k=1)"),
        ("f(a)(b)", "f(a)(b, k=1)"),
        ("f(')')", "f(')', k=1)"),
    ],
)
def test_keyword_set(before: str, after: str) -> None:
    assert_fixed(
        f"y = {before}\n", SetKeyword(site_of(f"y = {before}\n", before), "k", "1"), f"y = {after}\n"
    )


@pytest.mark.parametrize(
    ("source", "why"), [("f(a, **kw)", "may already hold"), ("f(x for x in y)", "would not parse")]
)
def test_keyword_not_set(source: str, why: str) -> None:
    assert_refused(source, SetKeyword(site_of(source, source), "k", "1"), why)


def test_lines_are_counted_as_python_counts_them() -> None:
    assert split_lines("a\x0cb\u2028c\r\nd\re\n") == ["a\x0cb\u2028c\r\n", "d\r", "e\n"]
    assert split_lines("") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = x[rows].clone()", "y = x[rows]"),
        ("y = torch.cat([a, b]).detach().clone().sum()", "y = torch.cat([a, b]).detach().sum()"),
        ("y = (a + b).clone()", "y = (a + b)"),
        ("y = x[rows] .\\\n    clone()", "y = x[rows]"),
        ("y = (\n    x[rows]\n    .clone()\n)", "y = (\n    x[rows]\n)"),
        ("f(x[rows].clone(), 'é')", "f(x[rows], 'é')"),
    ],
)
def test_a_call_left_out(before: str, after: str) -> None:
    words = before.removeprefix("y = ").removeprefix("f(").removesuffix(".sum()").removesuffix(", 'é')")
    words = words.removeprefix("(\n    ").removesuffix("\n)")
    assert_fixed(before, DropCall(site_of(before, words)), after)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("y = x[rows].clone(memory_format=f)", "without arguments"),
        ("y = (x[rows]  # all\n    .clone())", "a comment"),
        ("y = x[rows] \\\n    .clone()", "a backslash"),
        ("y = clone()", "nothing to fix"),
    ],
)
def test_a_call_that_stays(source: str, why: str) -> None:
    words = source.removeprefix("y = ")
    words = words[1:-1] if words.startswith("(") else words
    assert_refused(source, DropCall(site_of(source, words)), why)


ARRAYS = "import numpy as np\nimport torch\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.tensor(np.array(x).copy())", 'torch.tensor(np.asarray(x, order="C"))'),
        ("torch.tensor(np.array(x).copy(), device=d)", 'torch.tensor(np.asarray(x, order="C"), device=d)'),
        ("torch.tensor(np.array(x, dtype=t).copy())", 'torch.tensor(np.asarray(x, dtype=t, order="C"))'),
        ("torch.tensor(np.array((x),).copy())", 'torch.tensor(np.asarray((x), order="C"))'),
        ("torch.tensor(np.array(\n    x\n).copy())", 'torch.tensor(np.asarray(\n    x, order="C"\n))'),
        ("torch.tensor(np.array(\n    x  # é\n).copy())", "torch.tensor(np.array(\n    x  # é\n))"),
        ("torch.tensor(np.array(x, ndmin=2).copy())", "torch.tensor(np.array(x, ndmin=2))"),
        ("torch.tensor(np.array(x, t).copy())", "torch.tensor(np.array(x, t))"),
        ("torch.tensor(np.array(*x).copy())", "torch.tensor(np.array(*x))"),
        ("torch.tensor(np.array(x for x in y).copy())", "torch.tensor(np.array(x for x in y))"),
        ("torch.tensor(np.stack(x).copy())", "torch.tensor(np.stack(x))"),
        ("torch.from_numpy(np.array(x).copy())", "torch.from_numpy(np.array(x))"),
        ("own.tensor(np.array(x).copy())", "own.tensor(np.array(x))"),
        ("torch.tensor(own.array(x).copy())", "torch.tensor(own.array(x))"),
        ("torch.tensor(1, np.array(x).copy())", "torch.tensor(1, np.array(x))"),
    ],
)
def test_the_array_before_a_tensor_is_not_copied_either(before: str, after: str) -> None:
    start, end = (
        min(place for place in map(before.find, ("np.", "own.array")) if place >= 0),
        before.index(".copy()"),
    )
    words = before[start : end + len(".copy()")]
    assert_fixed(ARRAYS + before, DropCall(site_of(ARRAYS + before, words)), ARRAYS + after)


def test_the_tensor_is_the_same_for_anything() -> None:
    np, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    whole = np.arange(24.0).reshape(2, 3, 4)
    for x in (
        whole,
        whole.T,
        whole[:, ::-1],
        np.asfortranarray(whole),
        [1, 2.5],
        3,
        [whole[0], whole[1]],
        True,
    ):
        before, after = torch.tensor(np.array(x).copy()), torch.tensor(np.asarray(x, order="C"))
        assert (before.dtype, before.stride()) == (after.dtype, after.stride())
        assert torch.equal(before, after)
        before.zero_()
        after.zero_()
    assert whole[0, 0, 1] == 1
