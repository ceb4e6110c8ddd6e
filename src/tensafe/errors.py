"""What tensafe raises: every message is one line that says what is wrong, where, and what to do."""

from __future__ import annotations


class TensafeError(Exception):
    """The command cannot do what was asked: exit status 2."""


class RecordError(TensafeError):
    """A record file cannot be read."""


class UnknownRuleError(TensafeError):
    """A rule name or code that the catalogue does not hold."""
