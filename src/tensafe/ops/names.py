"""Finds the rows that a name means, however Python or torch spell it."""

from __future__ import annotations

import difflib
import math
import re
from functools import lru_cache

from tensafe.errors import TensafeError
from tensafe.ops.layers import FUNCTIONS
from tensafe.ops.reading import MODULES, Reading, Step, read
from tensafe.ops.stored import Stored
from tensafe.ops.subscripts import NoKeyError
from tensafe.ops.words import words

DUNDERS = {
    "add": "add", "radd": "add", "sub": "sub", "rsub": "rsub", "mul": "mul", "rmul": "mul", "truediv": "div",
    "div": "div", "floordiv": "floor_divide", "rfloordiv": "floor_divide", "mod": "remainder",
    "rmod": "remainder", "pow": "pow", "rpow": "pow", "matmul": "matmul", "rmatmul": "matmul", "neg": "neg",
    "pos": "positive", "abs": "abs", "invert": "bitwise_not", "rand": "bitwise_and", "ror": "bitwise_or",
    "rxor": "bitwise_xor", "iadd": "add_", "isub": "sub_", "imul": "mul_", "itruediv": "div_", "idiv": "div_",
    "ifloordiv": "floor_divide_", "imod": "remainder_", "ipow": "pow_", "eq": "eq", "ne": "ne", "lt": "lt",
    "le": "le", "gt": "gt", "ge": "ge", "iter": "unbind", "rlshift": "bitwise_left_shift",
    "rrshift": "bitwise_right_shift",
}  # fmt: skip
OPERATORS = words(
    "+ - * / // % ** @ & | ^ << >> += -= *= /= //= %= **= @= &= |= ^= <<= >>= == != < <= > >= ~"
)
_HOMES = (
    ("torch.nn.functional.", "F."),
    ("nn.functional.", "F."),
    ("functional.", "F."),
    ("torch.Tensor.", "x."),
    ("Tensor.", "x."),
    ("tensor.", "x."),
    ("torch.ops.aten.", "aten::"),
    ("ops.aten.", "aten::"),
    ("aten.", "aten::"),
    ("linalg.", "torch.linalg."),
    ("fft.", "torch.fft."),
    ("special.", "torch.special."),
    ("torch.nn.Parameter", "torch.nn.Parameter"),
    ("nn.Parameter", "torch.nn.Parameter"),
    ("nn.utils.", "torch.nn.utils."),
    ("nn.init.", "torch.nn.init."),
    ("init.", "torch.nn.init."),
    ("numpy.", "np."),
)
# Their functions are no methods of tensors by another name.
_CLOSED = ("F.", "np.", "math.", "copy.", "pickle.", "torch.")
_OPEN = ("torch.linalg.", "torch.fft.", "torch.special.")
_NAME = re.compile(r"[\w.:]+")
_INDEX = re.compile(r"^[A-Za-z_]\w*(\[.*)$")


class UnknownOperationError(TensafeError):
    """A name that no row has."""


def rows_named(name: str, table: Stored) -> list[str]:
    """The rows that a name means, the likeliest first; UnknownOperationError names the nearest otherwise.

    Of several operations in turn, as in `x.detach().clone()`, the row of each.
    """
    plain = name.strip()
    if _NAME.fullmatch(plain):
        reading = steps_of(plain, table)
        if reading is None or len(reading.steps) < 2:
            return _looked_up(plain, table)
    exact = _index(table).get(plain) or _index(table).get(_of_x(plain))
    if exact:
        return list(exact)
    reading = steps_of(plain, table)
    if reading is not None and not reading.steps and _INDEX.match(plain):
        raise UnknownOperationError(
            f"{plain!r} is no operation on a tensor: a string is no tensor indexing, but the key of a dict, "
            "which gives the very tensor that it holds"
            if plain.endswith(("']", '"]'))
            else _unknown(plain, plain, table)
        )
    if reading is None or not reading.steps:
        return _looked_up(plain, table)
    if len(reading.steps) > 1:
        return [row_of(step, table) for step in reading.steps]
    return _rows_of(reading.steps[0], table, plain)


def steps_of(text: str, table: Stored) -> Reading | None:
    """The operations that a text runs in turn; None where it is a name alone, or no Python."""
    index = _index(table)

    def gives_several(spelling: str) -> bool:
        rows = index.get(spelling) or index.get(f"torch{spelling[1:]}") or []
        return bool(rows) and _gives_several(rows[0], table)

    try:
        return read(text, gives_several)
    except NoKeyError as error:
        raise UnknownOperationError(f"{text.strip()!r} is no operation on a tensor: {error}") from error


def row_of(step: Step, table: Stored) -> str:
    """The row that tells of one step."""
    return _rows_of(step, table, step.text)[0]


def _rows_of(step: Step, table: Stored, text: str) -> list[str]:
    exact = None if _NAME.fullmatch(step.spelling) else _index(table).get(step.spelling)
    rows = exact or _looked_up(step.spelling, table, text)
    twin = table[rows[0]].in_place if step.in_place else ""
    return [twin, *rows] if twin else list(rows)


_SEVERAL = words(
    """
    split chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes unsafe_chunk unsafe_split meshgrid
    broadcast_tensors
    """
) | {"torch.autograd.grad(y, x)", "torch.where(condition)"}


def _gives_several(row: str, table: Stored) -> bool:
    return row in _SEVERAL or any(len(facts.results) > 1 for facts in table[row].groups)


def _of_x(text: str) -> str:
    """The same of x, where the text begins with another name: `images[mask]`, `loss.backward()`."""
    found = re.match(r"([A-Za-z_]\w*)(?=[\[.])", text)
    return f"x{text[found.end() :]}" if found and found.group(1) not in MODULES else text


def _looked_up(name: str, table: Stored, text: str = "") -> list[str]:
    found = dict.fromkeys(row for one in _spellings(name) for row in _index(table).get(one, ()))
    if not found:
        raise UnknownOperationError(_unknown(name, text or name, table))
    return list(found)


def _spellings(name: str) -> list[str]:
    """The forms under which the index may hold the name, the likeliest first."""
    if name in OPERATORS:
        return [f"{name}x"] if name == "~" else [f"x {name} y"]
    if _INDEX.match(name):
        return ["x[key]"]
    bare = re.sub(r"\(.*\)$", "", name)
    last = bare.rpartition(".")[2]
    function = FUNCTIONS.get(last)
    if function is not None and bare in (last, f"nn.{last}", f"torch.nn.{last}"):
        return [function, f"aten::{function.rpartition('.')[2]}"]
    if bare.startswith("math."):
        return ["float(x)"] if callable(getattr(math, last, None)) else []
    return _homes(name, bare, last)


def _homes(name: str, bare: str, last: str) -> list[str]:
    found = [f"{home}.{bare}" for home in ("x", "torch", "F")] if bare == last == name else []
    found.append(name) if not name.startswith(".") else None
    for long, short in _HOMES:
        if bare.startswith(long):
            bare = short + bare.removeprefix(long)
            break
    if bare.startswith("."):
        found.append(f"x{bare}")
    found.append(bare)
    if bare.startswith("aten::"):
        return [*found, bare.partition(".")[0]]
    if bare == last:
        found += [f"aten::{bare}", f".{bare}"]
    elif bare.startswith(_OPEN):
        return [*found, f"aten::{bare.split('.')[1]}_{last}"]
    elif bare.startswith("torch.") and bare.count(".") == 1:
        found += [f"x.{last}", f".{last}"]
    elif not bare.startswith((*_CLOSED, "aten::", ".")):
        found += [f"{home}.{last}" for home in ("x", "model", "optimizer", "torch")]
    elif bare.startswith("."):
        found.append(bare)
    return [*found, *(DUNDERS[one] for one in [last.strip("_")] if last.startswith("__") and one in DUNDERS)]


@lru_cache(maxsize=4)
def _index(table: Stored) -> dict[str, list[str]]:
    """Row names by spelling; `.name` holds every row whose spelling ends so."""
    found: dict[str, list[str]] = {}

    def add(key: str, row: str) -> None:
        rows = found.setdefault(key, [])
        if row not in rows:
            rows.append(row)

    for row in table.rows():
        add(row.name, row.name)
        add(f"aten::{row.name}", row.name) if row.kind in ("aten", "script") else None
        for one in row.spelled:
            add(one, row.name)
            add(one.removesuffix("()"), row.name)
            last = re.fullmatch(r"[\w.]*\.(\w+)", one)
            if last:
                add(f".{last.group(1)}", row.name)
    for one, rows in list(found.items()):
        called = re.fullmatch(r"([\w.]+\.\w+)\(.*\)", one)
        if called:
            found.setdefault(called.group(1), rows)
    return found


def _unknown(name: str, text: str, table: Stored) -> str:
    known = {one.removeprefix(".") for one in _index(table)}
    last = re.sub(r"\(.*\)$", "", name).rpartition(".")[2] or name
    known = {one for one in known if "." not in one and "::" not in one}
    near = difflib.get_close_matches(last, sorted(known), n=3, cutoff=0.7)
    hint = f"did you mean {' or '.join(near)}?" if near else "`tensafe ops` lists all"
    return f"no operation is called {text!r}: {hint}"
