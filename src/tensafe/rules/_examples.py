"""The examples of a rule, which are its tests: code, and what either engine must say of it."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

ENGINES = ("run", "check")
_MARK = re.compile(r"#\s*finds\s+(TS\d{3})(?:\s*\((run|check)\))?")


@dataclass(frozen=True, slots=True)
class Bad:
    """Code with a fault; the guilty line ends in `# finds TS000`, or `# finds TS000 (run)` where one engine
    is blind.

    `fixed` holds the pairs (old text, new text) that the rule's fix must give, or nothing when there is no
    fix. `raises` says that plain Python stops with an error at run time.
    """

    code: str
    fixed: tuple[str, str] | tuple[tuple[str, str], ...] = ()
    raises: bool = False

    def expected(self, engine: str) -> list[tuple[int, str]]:
        """(line, code) of every finding that this engine must report, lines counted from 1 in `text`."""
        marks = []
        for number, line in enumerate(self.text.splitlines(), 1):
            for code, only in _MARK.findall(line):
                if only in ("", engine):
                    marks.append((number, code))
        return marks

    @property
    def text(self) -> str:
        return _dedent(self.code)

    @property
    def fixed_text(self) -> str | None:
        """The text after the fix, or None when no fix is promised."""
        if not self.fixed:
            return None
        pairs = (self.fixed,) if isinstance(self.fixed[0], str) else self.fixed
        text = self.text
        for old, new in pairs:
            if old not in text:
                raise ValueError(f"the example does not contain {old!r}")
            text = text.replace(old, new, 1)
        return text


@dataclass(frozen=True, slots=True)
class Good:
    """Correct code on which both engines stay silent, and why it is correct."""

    code: str
    because: str

    @property
    def text(self) -> str:
        return _dedent(self.code)


def _dedent(code: str) -> str:
    return textwrap.dedent(code).strip() + "\n"
