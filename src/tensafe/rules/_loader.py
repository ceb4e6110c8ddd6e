"""Walks the folder, turns every rule file into a frozen `Rule`, and refuses an incomplete one."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

import tensafe.rules
from tensafe.errors import UnknownRuleError
from tensafe.facts import Call, Certainty, History, Kind
from tensafe.findings import Finding, Fix, Severity
from tensafe.rules import _page
from tensafe.rules._examples import Bad, Good

Find = Callable[[Call, History], Iterator[Finding]]
MakeFix = Callable[[Finding], "Fix | None"]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule of the catalogue, as its file states it."""

    code: str
    name: str
    since: str
    severity: Severity
    asked_at: frozenset[Kind]
    help: str
    page: _page.Page
    setup: str
    examples: tuple[Bad | Good, ...]
    find: Find
    fix: MakeFix | None

    @property
    def has_fix(self) -> bool:
        return any(isinstance(example, Bad) and example.fixed for example in self.examples)

    def judge(self, call: Call, history: History) -> Iterator[Finding]:
        """The findings of this rule at this moment, completed with name, severity, help and fix.

        A fix that `find` has set, as it knows the values, stays.
        """
        for finding in self.find(call, history):
            whole = replace(
                finding,
                name=self.name,
                severity=self._severity(call.certainty),
                help=finding.help or self.help,
                memory=finding.memory or call.memory,
            )
            yield replace(whole, fix=self.fix(whole)) if self.fix and not whole.fix else whole

    def _severity(self, certainty: Certainty) -> Severity:
        if certainty is Certainty.OFTEN_MEANT:
            return Severity.NOTICE
        if certainty is Certainty.MAY and self.severity is Severity.ERROR:
            return Severity.WARNING
        return self.severity


@functools.cache
def catalogue() -> tuple[Rule, ...]:
    """All rules, by code."""
    names = (entry.name for entry in pkgutil.iter_modules(tensafe.rules.__path__))
    rules = [
        read_rule(importlib.import_module(f"tensafe.rules.{name}"))
        for name in names
        if not name.startswith("_")
    ]
    return tuple(sorted(rules, key=lambda rule: rule.code))


def read_rule(module: ModuleType) -> Rule:
    """The rule that a module states; raises ValueError naming the file and what it lacks."""
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    try:
        if not re.fullmatch(r"TS\d{3}", module.CODE):
            raise ValueError(f"CODE is {module.CODE!r}, not TS and three digits")
        asked_at = module.AT if isinstance(module.AT, tuple) else (module.AT,)
        examples = tuple(module.EXAMPLES)
        for kind in (Bad, Good):
            if not any(isinstance(example, kind) for example in examples):
                raise ValueError(f"EXAMPLES holds no {kind.__name__}")
        return Rule(
            code=module.CODE,
            name=name,
            since=module.SINCE,
            severity=Severity(module.SEVERITY),
            asked_at=frozenset(Kind(kind) for kind in asked_at),
            help=" ".join(module.HELP.split()),
            page=_page.parse(module.__doc__ or ""),
            setup=inspect.cleandoc(module.SETUP) + "\n",
            examples=examples,
            find=module.find,
            fix=getattr(module, "fix", None),
        )
    except AttributeError as error:
        raise ValueError(f"rule {name}: the file states no {error.name}") from None
    except ValueError as error:
        raise ValueError(f"rule {name}: {error}") from None


def by_name(name: str) -> Rule:
    """The rule of this name or code; raises `UnknownRuleError` with the nearest names."""
    for rule in catalogue():
        if name.lower() in (rule.name, rule.code.lower()):
            return rule
    raise UnknownRuleError(_unknown(name))


def select(chosen: Sequence[str] = (), ignored: Sequence[str] = ()) -> tuple[Rule, ...]:
    """The rules to run; names, codes and code prefixes (`TS2`) are accepted, `ignored` wins."""
    wanted = _matching(chosen) if chosen else set(catalogue())
    unwanted = _matching(ignored)
    return tuple(rule for rule in catalogue() if rule in wanted and rule not in unwanted)


def _matching(patterns: Iterable[str]) -> set[Rule]:
    matched: set[Rule] = set()
    for pattern in patterns:
        hits = {
            rule
            for rule in catalogue()
            if pattern.lower() == rule.name or rule.code.startswith(pattern.upper())
        }
        if not hits or not pattern:
            raise UnknownRuleError(_unknown(pattern))
        matched |= hits
    return matched


def _unknown(name: str) -> str:
    import difflib

    known = [rule.name for rule in catalogue()] + [rule.code for rule in catalogue()]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "`tensafe rules` lists them"
    return f"no rule is called {name!r}: {hint}"
