"""What goes wrong in pickling: one line each."""

from __future__ import annotations

from tensafe.errors import TensafeError


class PicklingError(TensafeError):
    """An object that `tensafe.dumps` cannot write; the message names the path inside it."""


class UnpicklingError(TensafeError):
    """Bytes that `tensafe.loads` cannot read: foreign, truncated, or of another version."""
