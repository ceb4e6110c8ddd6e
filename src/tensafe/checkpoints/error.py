"""What the room raises."""

from __future__ import annotations

from tensafe.errors import TensafeError, one_line

LONGEST = 600


class CheckpointError(TensafeError):
    """A file cannot be read: one line with the file, the byte and what was expected there.

    Names that come from the file are made printable, and a very long message loses its middle.
    """

    def __init__(self, message: str) -> None:
        text = one_line(message)
        super().__init__(
            text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
        )
