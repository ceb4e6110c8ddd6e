"""In-place statements turned into their out-of-place twins, and the ones that must be refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixes.places import assert_fixed, assert_refused, fixed, site_of
from tensafe.findings import OutOfPlace, Site
from tensafe.fixes import twins

USE = "print(x, self, h)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x += y", "x = x + y"),
        ("x *= a + b", "x = x * (a + b)"),
        ("x /= n + eps", "x = x / (n + eps)"),
        ("x -= a - b", "x = x - (a - b)"),
        ("x -= a * b", "x = x - a * b"),
        ("x *= -y", "x = x * -y"),
        ("x **= -y", "x = x ** -y"),
        ("x **= y ** z", "x = x ** y ** z"),
        ("x *= y ** z", "x = x * y ** z"),
        ("x += y if c else z", "x = x + (y if c else z)"),
        ("x &= a == b", "x = x & (a == b)"),
        ("x &= not a", "x = x & (not a)"),
        ("x |= a or b", "x = x | (a or b)"),
        ("x += lambda: 1", "x = x + (lambda: 1)"),
        ("x += 1, 2", "x = x + (1, 2)"),
        ("x += (a - b)", "x = x + (a - b)"),
        ("x -= (a) - (b)", "x = x - ((a) - (b))"),
        ("x -= (a - b) * c", "x = x - (a - b) * c"),
        ("x -= (  # why\n    a - b\n)", "x = x - (  # why\n    a - b\n)"),
        ("x -= \\\n    a - b", "x = x - \\\n    (a - b)"),
        ("x*=a+b", "x= x *(a+b)"),
        ("x @= y", "x = x @ y"),
        ("x //= y % z", "x = x // (y % z)"),
        ("x <<= 1  # twice", "x = x << 1  # twice"),
        ("self.h += y", "self.h = self.h + y"),
        ("x.add_(y, alpha=2)", "x = x.add(y, alpha=2)"),
        ("x.mul_(2).add_(1)", "x = x.mul(2).add(1)"),
        ("self.h.mul_(2)", "self.h = self.h.mul(2)"),
        ("x.div_(\n    x.norm()  # length\n)", "x = x.div(\n    x.norm()  # length\n)"),
        ("torch.relu_(x)", "x = torch.relu(x)"),
        ("F.elu_(x, alpha=2.0)", "x = F.elu(x, alpha=2.0)"),
        ("F.relu(x, inplace=True)", "x = F.relu(x, inplace=False)"),
        ("y = F.relu(h + 1, inplace=True)", "y = F.relu(h + 1, inplace=False)"),
        ("x = x.mul_(2)", "x = x.mul(2)"),
        ("y = self.conv(x).relu_()", "y = self.conv(x).relu()"),
        ("y = (x + 1).relu_()", "y = (x + 1).relu()"),
        ("y = x.exp().mul_(2).sum()", "y = x.exp().mul(2).sum()"),
    ],
)
def test_rewritten(before: str, after: str) -> None:
    words = before.rstrip().removesuffix("# twice").rstrip()
    words = {"y = x.exp().mul_(2).sum()": "x.exp().mul_(2)"}.get(before, words)
    assert_fixed(f"{before}\n{USE}", OutOfPlace(site_of(before, words)), f"{after}\n{USE}")


@pytest.mark.parametrize(
    ("source", "words", "why"),
    [
        ("x.copy_(y)\nx\n", "x.copy_(y)", "`copy_` has no out-of-place twin"),
        ("x.zero_()\nx\n", "x.zero_()", "`zero_` has no out-of-place twin"),
        ("x.fill_(1)\nx\n", "x.fill_(1)", "`fill_` has no out-of-place twin"),
        ("x.eq_(y)\nx\n", "x.eq_(y)", "`eq_` has no out-of-place twin"),
        ("x.mul_(2).zero_()\nx\n", "x.mul_(2)", "`zero_` has no"),
        ("x[0] += y\nx\n", "x[0] += y", "through an index"),
        ("x[0] = y\nx\n", "x[0] = y", "through an index"),
        ("x[0].mul_(2)\nx\n", "x[0].mul_(2)", "through an index"),
        ("x.view(-1).mul_(2)\nx\n", "x.view(-1).mul_(2)", "through a view"),
        ("x.data.mul_(2)\nx\n", "x.data.mul_(2)", "through `.data`"),
        ("x.data += 2\nx\n", "x.data += 2", "through `.data`"),
        ("y = x.t().mul_(2)\nx\n", "x.t().mul_(2)", "through a view"),
        ("f().h += 1\n", "f().h += 1", "no name"),
        ("f(x).mul_(2)\n", "f(x).mul_(2)", "no name"),
        ("y = x.mul_(2)\nprint(x)\n", "x.mul_(2)", "read after it"),
        ("y = x.mul_(2) + x\n", "x.mul_(2)", "read after it"),
        ("y = self.h.mul_(2)\n", "self.h.mul_(2)", "others may read it"),
        ("y = [p.mul_(2) for p in ps]\n", "p.mul_(2)", "larger expression"),
        ("y = lambda: x.mul_(2)\n", "x.mul_(2)", "larger expression"),
        ("for p in params:\n    p += 1\n", "p += 1", "would be lost"),
        ("for p in params:\n    p.mul_(2)\n", "p.mul_(2)", "would be lost"),
        ("def act(x):\n    x += 1\n", "x += 1", "would be lost"),
        ("self.act(x)\n", "self.act(x)", "not the call of an in-place method"),
        ("F.relu(x, inplace=flag)\nx\n", "F.relu(x, inplace=flag)", "inplace=True"),
        ("optimizer.step()\n", "optimizer.step()", "not the call of an in-place method"),
        ("self.fc.weight.clamp_(-1, 1)\n", "self.fc.weight.clamp_(-1, 1)", "may be a parameter"),
        ("self.g = nn.Parameter(x)\nself.g *= 2\n", "self.g *= 2", "may be a parameter"),
    ],
)
def test_refused(source: str, words: str, why: str) -> None:
    assert_refused(source, OutOfPlace(site_of(source, words)), why)


@pytest.mark.parametrize(
    ("source", "words", "after"),
    [
        ("def f(x):\n    return x.mul_(2)\n", "x.mul_(2)", "def f(x):\n    return x.mul(2)\n"),
        ("for x in b:\n    x *= 2\n    f(x)\n", "x *= 2", "for x in b:\n    x = x * 2\n    f(x)\n"),
        (
            "while x.sum() < 3:\n    x += 1\n",
            "x += 1",
            "while x.sum() < 3:\n    x = x + 1\n",
        ),
        ("def f():\n    global x\n    x += 1\n", "x += 1", "def f():\n    global x\n    x = x + 1\n"),
        ("if c: x += 1; y = 2\nx\n", "x += 1", "if c: x = x + 1; y = 2\nx\n"),
        ("y = x.mul_(2)\n", "x.mul_(2)", "y = x.mul(2)\n"),
    ],
)
def test_what_is_read_later_decides(source: str, words: str, after: str) -> None:
    assert_fixed(source, OutOfPlace(site_of(source, words)), after)


def test_a_site_without_columns_is_found_when_it_is_clear() -> None:
    line_only = Site("/project/train.py", 1)
    assert_fixed("x += y\nx\n", OutOfPlace(line_only), "x = x + y\nx\n")
    assert_refused("x += 1; x += 2\nx\n", OutOfPlace(line_only), "cannot be told apart")


def test_a_call_over_lines_may_begin_at_its_last_attribute() -> None:
    source = "y = (a\n     .exp()\n     .mul_(2))\n"
    assert_fixed(source, OutOfPlace(site_of(source, "mul_(2)")), source.replace("mul_", "mul"))


def test_carriage_returns_and_wide_characters_stay() -> None:
    source = "名 = '日本'; x += y  # é\r\nprint(x)\r\n"
    assert_fixed(source, OutOfPlace(site_of(source, "x += y")), source.replace("x += y", "x = x + y"))


def test_a_file_that_changed_is_left_alone() -> None:
    assert_refused("x = 1\n", OutOfPlace(Site("/project/train.py", 9, 1, 9, 5)), "changed since")


SIGNS = ["+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "**"]
ATOMS = st.sampled_from(["a", "b", "1", "3", "(a)", "(a - b)", "abs(b)", "[a, 2][0]"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.builds(
        "{} {} {}".format, inner, st.sampled_from([*SIGNS[:-1], "<", "==", "and", "or"]), inner
    )
    unary = st.builds("{}{}".format, st.sampled_from(["-", "~", "not ", "+"]), inner)
    choice = st.builds("{} if {} else {}".format, inner, inner, inner)
    return st.one_of(binary, unary, choice, inner.map("({})".format))


def outcome(code: str, a: int, b: int) -> object:
    """What `x` is afterwards, or how the code stops."""
    names: dict[str, object] = {"x": 5, "a": a, "b": b}
    try:
        exec(code, names)
    except Exception as error:
        return type(error).__name__
    return names["x"]


@given(
    st.sampled_from(SIGNS), st.recursive(ATOMS, _grown, max_leaves=5), st.integers(0, 5), st.integers(-3, 4)
)
def test_the_rewritten_statement_computes_the_same(sign: str, value: str, a: int, b: int) -> None:
    if sign == "**" and ("<<" in value or "*" in value):
        return  # numbers without end
    before = f"x {sign}= {value}\n"
    try:
        compile(before, "", "exec")
    except SyntaxError:
        return
    result = fixed(f"{before}x\n", OutOfPlace(site_of(before, before.strip())))
    assert result.applied == 1, result.refused
    assert "=" in result.text
    assert f"{sign}= " not in result.text.replace("== ", "").replace(f"= x {sign}", "")
    assert outcome(result.text, a, b) == outcome(before, a, b)


def test_the_list_of_twins_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torch.nn.functional")
    assert not [name for name in twins.METHODS if not hasattr(torch.Tensor, name)]
    assert not [name for name in twins.METHODS if not hasattr(torch.Tensor, name[:-1])]
    assert not [
        name for name in twins.TORCH_FUNCTIONS if not (hasattr(torch, name) and hasattr(torch, name[:-1]))
    ]
    assert not [
        name
        for name in twins.FUNCTIONAL
        if not (hasattr(functional, name) and hasattr(functional, name[:-1]))
    ]


def test_twins_take_the_same_arguments_as_torch_says() -> None:
    torch = pytest.importorskip("torch")
    for name in sorted(twins.METHODS - {"polygamma_"}):  # whose function takes n first, but not its method
        assert _arguments(torch, name) <= _arguments(torch, name[:-1]), name


def _arguments(torch: object, name: str) -> set[str]:
    """The tensor overloads of an operator, each as its argument names and types."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")  # type: ignore[attr-defined]
    texts = {", ".join(f"{item.name}:{item.type}" for item in schema.arguments) for schema in schemas}
    return {text for text in texts if text.startswith("self:Tensor")}
