"""What an imported name stands for in the project: through packages that only pass names on, too."""

from __future__ import annotations

import ast

from tensafe.ops import words
from tensafe.static.definitions import scope_of
from tensafe.static.machine import Machine
from tensafe.static.source import Source
from tensafe.static.values import Class, Function, Library, Value

FURTHEST = 4  # files from the import to the definition
_KNOWN_LIBRARIES = ("torch", "numpy")
_FOREIGN = words(
    """
    torch numpy math os sys copy typing collections functools itertools re json random time logging
    dataclasses pathlib warnings torchvision scipy pandas transformers tqdm einops timm sklearn PIL cv2
    matplotlib
    """
)


def resolve(m: Machine, value: Library) -> Value:
    """The function or class behind an imported name, the name of torch or NumPy that it is, or itself."""
    return _follow(m, value, FURTHEST) or value


def starred(m: Machine, name: str) -> Value | None:
    """What `from helper import *` at the top of the file at work brings under this name."""
    return _through_stars(m, m.frame.source, name, FURTHEST)


def _follow(m: Machine, value: Library, hops: int) -> Value | None:
    parts = value.path.split(".")
    if hops == 0 or value.origin is None or (not value.level and parts[0] in _FOREIGN):
        return None
    longest, shortest = len(parts) - 1, 0 if value.level else 1
    for end in range(longest, shortest - 1, -1):  # `helper.f`, then `helper.alias_of_a_module.f`
        source = _source(m, value, parts[:end])
        if source is not None:
            return None if source is value.origin else _in_file(m, source, parts[end:], hops)
        if end == longest and _source(m, value, parts[:shortest]) is None:
            return None  # it is no project's at all
    return None


def _source(m: Machine, value: Library, parts: list[str]) -> Source | None:
    assert value.origin is not None
    return m.project.source_of(".".join(parts), value.level, value.origin)


def _in_file(m: Machine, source: Source, names: list[str], hops: int) -> Value | None:
    """What these names mean, one in the other, at the top of a file."""
    name, *inside = names
    found = scope_of(m, source).get(name)
    if found is None:
        return None if inside else _through_stars(m, source, name, hops)
    if type(found) is not Library:
        return found if isinstance(found, Function | Class) and not inside else None
    whole = Library(".".join([found.path, *inside]), found.origin, found.level)
    if not found.level and found.path.partition(".")[0] in _KNOWN_LIBRARIES:
        return whole
    return _follow(m, whole, hops - 1)


def _through_stars(m: Machine, source: Source, name: str, hops: int) -> Value | None:
    """The later `from x import *` wins."""
    for star in reversed(source.stars):
        other = m.project.source_of(star.module or "", star.level, source)
        if other is not None and other is not source and hops and _exports(other, name):
            found = _in_file(m, other, [name], hops - 1)
            if found is not None:
                return found
    return None


def _exports(source: Source, name: str) -> bool:
    """Whether `import *` takes this name from a file: what `__all__` lists, else what has no underscore."""
    for statement in source.tree.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in statement.targets
        ):
            listed = getattr(statement.value, "elts", None)
            if listed is not None:
                return any(isinstance(one, ast.Constant) and one.value == name for one in listed)
    return not name.startswith("_")
