"""A tensor's name as an expression of Python, for advice that can be pasted."""

from __future__ import annotations

import ast
import re

LONGEST = 40
_INDEXED = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\.(\d+)(?![^.\[\]])""")
_ALLOWED = (ast.Expression, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.Load)


def cut(name: str, most: int = 60) -> str:
    """A long name without its middle."""
    half = most // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half + 1 :]}"


def expression(name: str) -> str:
    """`model.0.weight` as `model[0].weight`; "x" for names that are long or that Python cannot say."""
    text = _INDEXED.sub(lambda found: f"[{found[1]}]" if found[1] else found[0], name)
    return text if 0 < len(text) <= LONGEST and _is_expression(text) else "x"


def _is_expression(text: str) -> bool:
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return all(isinstance(node, _ALLOWED) for node in ast.walk(tree))
