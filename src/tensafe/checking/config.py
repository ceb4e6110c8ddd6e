"""`[tool.tensafe]` of the nearest pyproject.toml: read, validated, and asked."""

from __future__ import annotations

import difflib
import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

from tensafe.checking.globs import matches, refuse_unreadable
from tensafe.errors import TensafeError, UnknownRuleError
from tensafe.findings import Finding, Severity
from tensafe.findings.cells import split_cell
from tensafe.rules._loader import Rule, by_name, select

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "pyproject.toml"
OFF = "off"


@dataclass(frozen=True)
class Settings:
    """What a project asks of `check`; paths in it are read from `root`."""

    root: Path
    file: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    severity: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    unused_allows: bool = False

    def rules(self, select_: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
        """The rules to ask; `--select` replaces what the file selects and ignores, `--ignore` adds to it."""
        off = [name for name, level in self.severity.items() if level == OFF]
        if select_:
            return select(select_, ignore)
        return select(self.select, [*self.ignore, *off, *ignore])

    def excludes(self, path: str | Path) -> bool:
        """Whether a file or folder is left out."""
        inside = self._inside(path)
        return inside is not None and any(matches(inside, pattern) for pattern in self.exclude)

    def ignores(self, finding: Finding) -> bool:
        """Whether `per-file-ignores` drops a finding."""
        if not self.per_file_ignores:
            return False
        return finding.code in self._ignored_codes(finding.at.path)

    def ignored_in(self, path: str) -> frozenset[str]:
        """The codes that `per-file-ignores` drops in this file."""
        return self._ignored_codes(path) if self.per_file_ignores else frozenset()

    def judged(self, finding: Finding) -> Finding:
        """The finding with the severity that the project gives to its rule."""
        level = self.severity.get(finding.code)
        return replace(finding, severity=Severity(level)) if level not in (None, OFF) else finding

    def _ignored_codes(self, path: str) -> frozenset[str]:
        inside = self._inside(split_cell(path)[0])
        if inside is None:
            return frozenset()
        names = [name for pattern, some in self.per_file_ignores if matches(inside, pattern) for name in some]
        return _codes(tuple(names)) if names else frozenset()

    def _inside(self, path: str | Path) -> PurePath | None:
        try:
            return PurePath(os.path.abspath(path)).relative_to(self.root)
        except ValueError:  # it lies elsewhere
            return None


@functools.cache
def _codes(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(rule.code for rule in select(names))


def settings_for(path: Path) -> Settings:
    """The settings of the nearest pyproject.toml with a `[tool.tensafe]`, from a checked path upwards."""
    start = Path(os.path.abspath(path))
    folder = start if start.is_dir() else start.parent
    for above in (folder, *folder.parents):
        file = above / FILE
        if file.is_file():
            status = file.stat()
            settings = _read_once(file, status.st_mtime_ns, status.st_size)
            if settings is not None:
                return settings
    return Settings(folder)


@functools.lru_cache(maxsize=256)
def _read_once(file: Path, changed_ns: int, nbytes: int) -> Settings | None:
    table = _table(file, required=False)
    return None if table is None else _settings(table, file)


def settings_in(file: Path) -> Settings:
    """The settings of a file that was named; without a `[tool.tensafe]` they are the defaults."""
    whole = Path(os.path.abspath(file))
    return _settings(_table(whole, required=True) or {}, whole)


def _table(file: Path, required: bool) -> object:
    """The `[tool.tensafe]` of a file, None when it has none."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise TensafeError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None
    if "tensafe" not in text and not required:
        return None
    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise TensafeError(f"{file}: not TOML: {error}") from None
    except RecursionError:
        raise TensafeError(f"{file}: not TOML that can be read: nested too deeply") from None
    return tool.get("tensafe") if isinstance(tool, dict) else None


def _settings(table: object, file: Path) -> Settings:
    if not isinstance(table, dict):
        raise TensafeError(f"{file}: [tool.tensafe] is not a table")
    read: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _READERS:
            raise TensafeError(f"{file}: [tool.tensafe] has no key {key!r}: {_near(key)}")
        try:
            read[key.replace("-", "_")] = _READERS[key](value)
        except UnknownRuleError as error:
            raise TensafeError(f"{file}: [tool.tensafe] {key}: {error}") from None
        except ValueError as error:
            raise TensafeError(f"{file}: [tool.tensafe] {key} {error}") from None
    return Settings(file.parent, file, **read)


def _near(key: str) -> str:
    near = difflib.get_close_matches(key, _READERS, n=1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(_READERS)}"


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ValueError("must be a list of strings")
    return tuple(value)


def _patterns(value: object) -> tuple[str, ...]:
    patterns = _strings(value)
    for pattern in patterns:
        refuse_unreadable(pattern)
    return patterns


def _rules(value: object) -> tuple[str, ...]:
    names = _strings(value)
    select(names)
    return names


def _some_rules(value: object) -> tuple[str, ...]:
    names = _rules(value)
    if not names:
        raise ValueError("selects no rule")
    return names


def _by_glob(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise ValueError('must be a table, as in {"tests/*" = ["TS205"]}')
    return tuple(
        (pattern, _rules(names)) for pattern, names in zip(_patterns([*value]), value.values(), strict=True)
    )


def _severities(value: object) -> Mapping[str, str]:
    levels = [*(severity.value for severity in Severity), OFF]
    if not isinstance(value, dict) or not all(level in levels for level in value.values()):
        raise ValueError(
            f'must be a table with the values {", ".join(levels)}, as in {{graph-cut = "error"}}'
        )
    return MappingProxyType({by_name(name).code: level for name, level in value.items()})


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


_READERS: dict[str, Callable[[object], object]] = {
    "select": _some_rules,
    "ignore": _rules,
    "per-file-ignores": _by_glob,
    "exclude": _patterns,
    "severity": _severities,
    "unused-allows": _switch,
}
