"""What tensafe raises: every message is one line that says what is wrong, where, and what to do."""

from __future__ import annotations


class TensafeError(Exception):
    """What was asked cannot be done; a command that meets it says so and ends with exit status 2."""


class RecordError(TensafeError):
    """A record file cannot be read."""


class UnknownRuleError(TensafeError):
    """A rule name or code that the catalogue does not hold."""


def one_line(text: str) -> str:
    """The text with all that could break the line or steer a terminal escaped."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
