"""What goes wrong in pickling: one line each."""

from __future__ import annotations

import pickle

from tensafe.errors import TensafeError


class PicklingError(TensafeError, pickle.PicklingError):
    """An object that `tensafe.dumps` cannot write; the message names the path inside it."""


class UnpicklingError(TensafeError, pickle.UnpicklingError):
    """Bytes that `tensafe.loads` cannot read: foreign, truncated, or of another version."""
