"""A rule's page as Markdown: `python -m tensafe.rules._pages` writes all into docs/rules."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tensafe.rules._examples import ENGINES, Bad, Good
from tensafe.rules._loader import Rule, catalogue

_MARK = re.compile(r"\s*#\s*finds\s+TS\d{3}(?:\s*\((?:run|check)\))?")


def markdown(rule: Rule) -> str:
    """Headline, facts, sections and examples of one rule."""
    parts = [
        f"# {rule.name} ({rule.code})",
        rule.page.headline,
        f"{_facts(rule)}\n\nSilence it on one line with `# tensafe: allow {rule.name}`.",
        *(f"## {title}\n\n{body}" for title, body in rule.page.sections.items()),
        "## Examples",
        f"After this set-up:\n\n{_code(rule.setup)}",
        *(_example(example) for example in rule.examples),
    ]
    return "\n\n".join(parts) + "\n"


def index(rules: Sequence[Rule]) -> str:
    """The table of all rules."""
    rows = [f"| {r.code} | [{r.name}]({r.name}.md) | {r.severity.value} | {r.page.headline} |" for r in rules]
    return (
        "\n".join(["# Rules", "", "| code | name | severity | reports |", "|---|---|---|---|", *rows]) + "\n"
    )


def write_pages(folder: Path) -> int:
    """Write every page and the index, remove pages of rules that are gone; the number of rules."""
    rules = catalogue()
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{rule.name}.md": markdown(rule) for rule in rules} | {"README.md": index(rules)}
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, page in pages.items():
        (folder / name).write_text(page, encoding="utf-8")
    return len(rules)


def _facts(rule: Rule) -> str:
    fix = "has a fix" if rule.has_fix else "no automatic fix"
    return f"*{rule.severity.value}, {fix}, found by {_engines(rule)}, since {rule.since}*"


def _engines(rule: Rule) -> str:
    """Which commands find it, as the marks in the examples tell."""
    bad = [example for example in rule.examples if isinstance(example, Bad)]
    seen = [f"`tensafe {engine}`" for engine in ENGINES if any(example.expected(engine) for example in bad)]
    return " and ".join(seen)


def _example(example: Bad | Good) -> str:
    if isinstance(example, Good):
        return f"Good, {example.because}:\n\n{_code(example.text)}"
    words = "Bad (plain Python stops with an error)" if example.raises else "Bad"
    parts = [f"{words}:\n\n{_code(_marked(example))}"]
    if example.fixed_text is not None:
        parts.append(f"The fix:\n\n{_code(_difference(example.text, example.fixed_text), 'diff')}")
    return "\n\n".join(parts)


def _marked(example: Bad) -> str:
    """The text with the test's marks turned into words: `# <- here`, with the engine that alone sees it."""
    lines = example.text.splitlines()
    for engine in ENGINES:
        other = next(name for name in ENGINES if name != engine)
        alone = set(example.expected(engine)) - set(example.expected(other))
        for number, _ in alone:
            lines[number - 1] = _MARK.sub(f"  # <- here, seen by `tensafe {engine}`", lines[number - 1])
    return "\n".join(_MARK.sub("  # <- here", line) for line in lines)


def _difference(before: str, after: str) -> str:
    old, new = (_MARK.sub("", text).splitlines() for text in (before, after))
    return "\n".join(line for line in difflib.ndiff(old, new) if line[0] in "+-")


def _code(text: str, language: str = "python") -> str:
    return f"```{language}\n{text.strip()}\n```"


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/rules")
    print(f"{write_pages(target)} pages in {target}")
