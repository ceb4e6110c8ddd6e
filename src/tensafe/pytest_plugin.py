"""`pytest --tensafe`: each test runs under the running engine, and what is found belongs to the test.

Nothing is imported, patched or slowed down without the option. Fixtures that are set up for a test are
watched with it, what they do after it is not. Works under pytest-xdist: what a worker finds travels with the
test's report.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tensafe.findings import Finding, Record
    from tensafe.findings.merging import Told
    from tensafe.guards import Watching
    from tensafe.rules._loader import Rule

MARKER = "tensafe"


class _Mode(argparse.Action):
    """The mode is a part of the option's name; a value that is none of them is refused with all three."""

    def __call__(
        self, parser: argparse.ArgumentParser, space: argparse.Namespace, values: Any, name: str | None = None
    ) -> None:
        setattr(space, self.dest, (name or "").partition("=")[2] or "warn")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tensafe", "tensafe: who shares this tensor's memory, and who wrote to it")
    # three names, as one with an optional value would swallow the path behind it
    group.addoption(
        "--tensafe",
        "--tensafe=warn",
        "--tensafe=error",
        dest="tensafe",
        action=_Mode,
        nargs=0,
        default=None,
        help="run each test under tensafe's engine and tell what it finds at the end (=warn: the same; "
        "=error: fail a test in which an error is found, too)",
    )
    group.addoption("--tensafe-select", metavar="RULES", default="", help="only these rules of tensafe")
    group.addoption("--tensafe-ignore", metavar="RULES", default="", help="not these rules of tensafe")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(allow=[...]): rules of tensafe that may find something in this test; allow='all' for all",
    )
    mode = config.getoption("tensafe")
    if mode is None:
        return
    from tensafe.errors import TensafeError

    try:
        rules = _rules(config.getoption("tensafe_select"), config.getoption("tensafe_ignore"))
    except TensafeError as error:
        raise pytest.UsageError(f"tensafe: {error}") from None
    config.pluginmanager.register(Tests(config, mode, rules), "tensafe-tests")


def _rules(select: str, ignore: str | Sequence[str]) -> tuple[Rule, ...]:
    from tensafe.guards import listed
    from tensafe.rules._loader import select as select_rules

    return select_rules(listed(select), listed(ignore))


class Tests:
    """What a session watches and collects."""

    def __init__(self, config: pytest.Config, mode: str, rules: tuple[Rule, ...]) -> None:
        self._mode = mode
        self._rules = rules
        self._worker = hasattr(config, "workerinput")  # of pytest-xdist: its reports go home
        self._seen: dict[str, Watching] = {}
        self._told: list[Told] = []
        self._watched = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """A marker that names no rule is a mistake, told before anything runs."""
        from tensafe.errors import TensafeError

        for item in items:
            try:
                self._rules_for(item)
            except TensafeError as error:
                raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.{MARKER}: {error}") from None

    def _rules_for(self, item: pytest.Item) -> tuple[Rule, ...]:
        """The rules for a test: those of the session without what its markers allow."""
        from tensafe.guards import listed
        from tensafe.rules._loader import select

        allowed: list[str] = []
        for mark in item.iter_markers(MARKER):
            allowed += listed(_allowed(mark))
        if "all" in allowed:
            return ()
        kept = set(select((), allowed)) if allowed else set(self._rules)
        return tuple(rule for rule in self._rules if rule in kept)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        rules = self._rules_for(item)
        if rules and "torch" in sys.modules:  # without torch there is nothing to watch
            self._seen[item.nodeid] = seen = _watching(rules)
            seen.__enter__()
        try:
            return (yield)
        except BaseException:
            self._leave(item)  # the test itself will not run
            raise

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            result = yield
        except BaseException:
            self._leave(item)
            raise
        errors = self._leave(item)
        if self._mode == "error" and errors and not _told_by_unittest(item):
            item.stash[_FAILED] = True
            pytest.fail(_text(errors), pytrace=False)
        return result

    def _leave(self, item: pytest.Item) -> list[Finding]:
        """End the watching of a test; its errors."""
        from tensafe.findings import to_json

        seen = self._seen.pop(item.nodeid, None)
        if seen is None:
            return []
        seen.__exit__(*sys.exc_info())
        self._watched += 1
        record = _loud(seen.record)
        if record.findings or record.not_checked:
            item.stash[_FOUND] = to_json(record)
        return [finding for finding in record.findings if finding.severity.value == "error"]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, Any, Any]:
        if self._watched:
            for failure in (call.excinfo, *(getattr(item, "_excinfo", None) or ())):  # the rest: of unittest
                if failure is not None:
                    _show_without_us(failure)
        report = yield
        if report.when == "call" and item.stash.get(_FAILED, False):
            del item.stash[_FAILED]
            report.outcome = "failed"  # a test that is marked xfail expects another failure than this
            vars(report).pop("wasxfail", None)
        found = item.stash.get(_FOUND, None)
        if found is not None and report.when != "teardown":
            report.tensafe = found  # a string, so that it may travel from a worker
            del item.stash[_FOUND]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = getattr(report, "tensafe", None)
        if found is not None and not self._worker:
            from tensafe.findings import from_json
            from tensafe.findings.merging import Told

            self._told.append(Told(from_json(found), report.nodeid))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What was found, each once, with the tests that it was found in."""
        lines = _summary(self._told)
        if lines or self._watched:
            terminalreporter.section("tensafe")
            for line in lines or [f"nothing found in {self._watched} test{'s' * (self._watched != 1)}"]:
                terminalreporter.write_line(line)


def _allowed(mark: pytest.Mark) -> str | Sequence[str]:
    """What a marker allows; one that is spelled otherwise would allow nothing, and never say so."""
    from tensafe.errors import TensafeError

    names = mark.kwargs.get("allow", ())
    said = isinstance(names, str) or (
        isinstance(names, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in names)
    )
    if mark.args or set(mark.kwargs) - {"allow"} or not said:
        raise TensafeError('it takes the names of rules as `allow=["lost-write"]`, and nothing else')
    return names if isinstance(names, str) else list(names)


def _told_by_unittest(item: pytest.Item) -> bool:
    """Whether a unittest method failed, skipped or failed as expected: nothing is raised out of one."""
    return bool(getattr(item, "_excinfo", None))


_FOUND = pytest.StashKey[str]()
_FAILED = pytest.StashKey[bool]()
"""A test that went well by itself, and fails for what was found in it."""


def _show_without_us(failure: pytest.ExceptionInfo[BaseException]) -> None:
    """A test that fails shows its own frames and those of torch, as it does without the option."""
    from tensafe.runtime.program import without_our_frames

    theirs = without_our_frames(_without_our_hooks(failure.tb))
    if theirs is not None:
        failure.traceback = type(failure.traceback)(theirs)
    seen = {id(failure.value)}
    pending = [failure.value.__cause__, failure.value.__context__]
    while pending:
        error = pending.pop()
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            error.__traceback__ = without_our_frames(error.__traceback__)
            pending += [error.__cause__, error.__context__]


def _without_our_hooks(traceback: TracebackType) -> TracebackType | None:
    """The same traceback, less the entries of pluggy that threw the error into our hooks: `--tb=native`."""
    entries = [traceback]
    while (following := entries[-1].tb_next) is not None:
        entries.append(following)
    files = [entry.tb_frame.f_code.co_filename for entry in entries]
    theirs: TracebackType | None = None
    for entry, inner in zip(reversed(entries), reversed([*files[1:], ""]), strict=True):
        if inner != __file__:
            theirs = TracebackType(theirs, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return theirs


def _watching(rules: tuple[Rule, ...]) -> Watching:
    from tensafe.collector import Collector
    from tensafe.guards import Watching

    return Watching(Collector(rules))


def _loud(record: Record) -> Record:
    """Without notices: true, and often meant."""
    from dataclasses import replace

    loud = tuple(finding for finding in record.findings if finding.severity.value != "notice")
    return replace(record, findings=loud)


def _text(findings: Sequence[Finding]) -> str:
    from tensafe.report import text
    from tensafe.report.style import plain

    view = text.View()
    told = [plain(text.render_finding(finding, view)) for finding in findings]
    names = ", ".join(dict.fromkeys(finding.name for finding in findings))
    return f"tensafe: {names}\n\n" + "\n".join(told).rstrip()


def _summary(told: Sequence[Told]) -> list[str]:
    if not told:
        return []
    from tensafe.findings.merging import merge
    from tensafe.report import text
    from tensafe.report.style import plain

    return plain(text.render(merge(told), text.View())).splitlines()
