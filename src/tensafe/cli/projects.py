"""The checked paths by the settings that hold for them: most often there is one project."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tensafe.checking.config import Settings, settings_for, settings_in
from tensafe.checking.documents import Document, opened
from tensafe.cli.options import flat
from tensafe.errors import TensafeError
from tensafe.findings import Finding, Record
from tensafe.rules._loader import Rule

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Project:
    """Paths that share settings, and the rules that these and the command line leave."""

    settings: Settings
    rules: tuple[Rule, ...]
    paths: tuple[Path, ...]
    force_exclude: bool = False

    def files(self) -> list[Path]:
        """The files to check."""
        from tensafe.check import python_files

        return python_files(self.paths, self.settings.excludes, self.force_exclude)

    def holds(self, path: str) -> bool:
        """Whether a file was checked for one of these paths."""
        path = os.path.abspath(path)
        return any(
            path == whole or path.startswith(os.path.join(whole, ""))
            for whole in map(os.path.abspath, self.paths)
        )

    def look(self, text: str, path: str) -> list[Finding]:
        """The findings in a text that this project wants to hear of."""
        from tensafe.check import check_text

        found = check_text(text, path, self.rules)
        return [self.settings.judged(finding) for finding in found if not self.settings.ignores(finding)]


def projects(paths: Sequence[Path], chosen: Namespace) -> list[Project]:
    """The paths, grouped; raises TensafeError when no rule is left, or settings would be overwritten."""
    by_file: dict[Path | None, tuple[Settings, list[Path]]] = {}
    for path in paths:
        settings = _settings(path, chosen)
        by_file.setdefault(settings.file, (settings, []))[1].append(path)
    _spare_settings(filter(None, by_file), chosen)
    return [
        Project(settings, _rules(settings, chosen), tuple(some), chosen.force_exclude)
        for settings, some in by_file.values()
    ]


def _spare_settings(files: Iterable[Path], chosen: Namespace) -> None:
    """Refuse to write a report or a new baseline over the settings that hold here."""
    written = [chosen.output, chosen.baseline if chosen.write_baseline else None]
    if any(written):
        from tensafe.report.write import refuse_overwriting

        some = list(files)
        for path in filter(None, written):
            refuse_overwriting(Path(path), some, "the settings of the project")


def opened_in(some: Sequence[Project]) -> Callable[[str], Document | None]:
    """Opens a file to fix it, if it lies in one of the checked paths; what those call is only told of."""

    def open_checked(path: str) -> Document | None:
        return opened(path) if any(project.holds(path) for project in some) else None

    return open_checked


def _settings(path: Path, chosen: Namespace) -> Settings:
    if chosen.isolated:
        return Settings(Path.cwd())
    return settings_in(Path(chosen.config)) if chosen.config else settings_for(path)


def _rules(settings: Settings, chosen: Namespace) -> tuple[Rule, ...]:
    rules = settings.rules(flat(chosen.select), flat(chosen.ignore))
    if not rules:
        whose = f"{settings.file} and the options" if settings.file else "--select and --ignore"
        raise TensafeError(f"{whose} leave no rule; `tensafe rules` lists them")
    return rules


def all_rules(some: Sequence[Project]) -> tuple[Rule, ...]:
    """The rules of all projects, by code, each once."""
    rules = {rule.code: rule for project in some for rule in project.rules}
    return tuple(rules[code] for code in sorted(rules))


def check(some: Sequence[Project], chosen: Namespace, progress: Progress | None) -> Record:
    """Check every project; one record."""
    from tensafe.check import Asked, check_paths

    records = [
        check_paths(
            project.paths,
            project.rules,
            chosen.jobs,
            progress,
            Asked(
                settings=project.settings,
                force_exclude=project.force_exclude,
                unused_allows=chosen.unused_allows or project.settings.unused_allows,
                cached=not chosen.no_cache,
            ),
        )
        for project in some
    ]
    return records[0] if len(records) == 1 else _joined(records)


def _joined(records: Sequence[Record]) -> Record:
    summary = dict(records[0].summary)
    for record in records[1:]:
        for name, value in record.summary.items():
            before = summary.get(name, 0)
            if isinstance(value, int | float) and isinstance(before, int | float):
                summary[name] = round(before + value, 3)
    return replace(
        records[0],
        findings=tuple(finding for record in records for finding in record.findings),
        not_checked=tuple(item for record in records for item in record.not_checked),
        summary=summary,
    )
