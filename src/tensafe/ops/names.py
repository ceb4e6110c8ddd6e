"""Finds the rows that a name means, however Python or torch spell it."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache

from tensafe.errors import TensafeError
from tensafe.ops.stored import Stored

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
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "+=",
    "-=",
    "*=",
    "/=",
    "//=",
    "%=",
    "**=",
    "&=",
    "|=",
    "^=",
    "<<=",
    ">>=",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "~",
]
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
)
_INDEX = re.compile(r"^[A-Za-z_]\w*(\[.*)$")


class UnknownOperationError(TensafeError):
    """A name that no row has."""


def rows_named(name: str, table: Stored) -> list[str]:
    """The rows that a name means, the likeliest first; UnknownOperationError names the nearest otherwise."""
    plain = name.strip()
    found = dict.fromkeys(row for one in _spellings(plain) for row in _index(table).get(one, ()))
    if not found:
        raise UnknownOperationError(_unknown(plain, table))
    return list(found)


def _spellings(name: str) -> list[str]:
    """The forms under which the index may hold the name, the likeliest first."""
    if name in OPERATORS:
        return [f"{name}x"] if name == "~" else [f"x {name} y"]
    index = _INDEX.match(name)
    if index:
        return [name, f"x{index.group(1)}", *_indexing(index.group(1))]
    bare = re.sub(r"\(.*\)$", "", name)
    last = bare.rpartition(".")[2]
    found = [f"{home}.{bare}" for home in ("x", "torch", "F")] if bare == last == name else []
    found.append(name)
    for long, short in _HOMES:
        if bare.startswith(long):
            bare = short + bare.removeprefix(long)
            break
    found.append(bare)
    if bare.startswith("aten::"):
        return [*found, bare.partition(".")[0]]
    if bare.startswith("."):
        found.append(f"x{bare}")
    if bare == last:
        found += [f"aten::{bare}", f".{bare}"]
    elif not bare.startswith(("F.", "torch.", "aten::")):
        found.append(f"x.{last}")
    if bare != last:
        found.append(f".{last}")
    return [*found, *(DUNDERS[one] for one in [last.strip("_")] if last.startswith("__") and one in DUNDERS)]


def _indexing(text: str) -> list[str]:
    """The form of indexing that a text such as `[mask] = 0` has."""
    inside, _, rest = text[1:].rpartition("]")
    form = f"x[{_key(inside.partition(']')[0] if '][' in inside else inside)}]"
    if "][" in inside:
        return ["x[0][1] = v" if form in ("x[0]", "x[1:3]") else "x[mask][0] = v"]
    if "=" not in rest:
        return [form]
    if "+=" in rest and form not in ("x[0]", "x[1:3]"):
        return ["x[mask] += v"]
    return ["x[i] = v" if form in ("x[0]", "x[1:3]", "x[..., None]") else "x[mask] = v"]


def _key(inside: str) -> str:
    if inside.startswith("["):
        return "[0, 2]"
    if "mask" in inside or any(sign in inside for sign in ("<", ">", "==", "!=", "~", "bool")):
        return "mask"
    parts = [part.strip() for part in inside.split(",")]
    if any(re.fullmatch(r"[A-Za-z_]\w{2,}", part) and part != "None" for part in parts):
        return "index"
    if any(part in ("None", "...") for part in parts):
        return "..., None"
    return "1:3" if ":" in inside else "0"


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
    return found


def _unknown(name: str, table: Stored) -> str:
    known = {one.removeprefix(".") for one in _index(table)}
    last = re.sub(r"\(.*\)$", "", name).rpartition(".")[2] or name
    known = {one for one in known if "." not in one and "::" not in one}
    near = difflib.get_close_matches(last, sorted(known), n=3, cutoff=0.7)
    hint = f"did you mean {' or '.join(near)}?" if near else "`tensafe ops` lists all"
    return f"no operation is called {name!r}: {hint}"
