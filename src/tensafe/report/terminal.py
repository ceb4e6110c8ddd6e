"""Where text goes: colour, width and a progress bar on a terminal, plain text in a pipe."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from tensafe.errors import TensafeError
from tensafe.report.style import COLOURS, Line, plain
from tensafe.report.text import PIPE_WIDTH

NARROWEST = 60
STREAMS = {"<stdout>": "standard output", "<stderr>": "standard error"}
SECONDS_BEFORE_A_BAR = 0.7


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody watches this stream; it is None when it was closed before we began."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def width_of(stream: TextIO) -> int:
    """How many columns a line may take."""
    if not is_terminal(stream):
        return PIPE_WIDTH
    try:
        return max(NARROWEST, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return PIPE_WIDTH


def wants_colour(stream: TextIO) -> bool:
    """Colour on a terminal, unless NO_COLOR is set; FORCE_COLOR colours a pipe too."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def writing_to(stream: TextIO) -> Iterator[None]:
    """Raises `TensafeError` where a full disk stops us; a reader that left stays a BrokenPipeError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = STREAMS.get(getattr(stream, "name", ""), "the output")
        raise TensafeError(f"cannot write to {name}: {error.strerror or error}") from None


def settle(stream: TextIO | None) -> None:
    """Drop what a stream could not write, so that the flush at exit does not fail on it again."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    except ValueError:  # closed
        return


def write_lines(lines: Iterable[Line], stream: TextIO) -> None:
    """Print the lines, in colour where it is wanted."""
    if wants_colour(stream):
        _write_coloured(lines, stream)
    else:
        write_text(plain(lines), stream)


def write_text(text: str, stream: TextIO | None) -> None:
    """Print a text; characters that the stream cannot encode come out escaped."""
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with writing_to(stream):
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()


def write_page(markdown: str, stream: TextIO | None) -> None:
    """A page of Markdown: typeset on a terminal, as it is in a pipe."""
    if stream is None or not wants_colour(stream):
        write_text(markdown, stream)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    with writing_to(stream):
        Console(file=stream, width=min(width_of(stream), 100)).print(Markdown(markdown))
        stream.flush()


@contextlib.contextmanager
def progress(what: str, stream: TextIO | None) -> Iterator[Callable[[int, int], None] | None]:
    """`progress(done, total)` draws a bar on a terminal once the work has taken a while; None elsewhere."""
    if stream is None or not is_terminal(stream) or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = _Bar(what, stream)
    try:
        yield bar.show
    finally:
        bar.close()


class _Bar:
    """A bar that appears late and leaves no trace."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what, self._stream = what, stream
        self._begun = time.monotonic()
        self._close: Callable[[], None] | None = None
        self._update: Callable[[int, int], None] | None = None

    def show(self, done: int, total: int) -> None:
        if self._update is None and time.monotonic() - self._begun > SECONDS_BEFORE_A_BAR:
            self._open(total)
        if self._update is not None:
            self._update(done, total)

    def close(self) -> None:
        if self._close is not None:
            self._close()

    def _open(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import Progress

        bar = Progress(console=Console(file=self._stream), transient=True)
        task = bar.add_task(self._what, total=total)
        bar.start()
        self._close = bar.stop
        self._update = lambda done, total: bar.update(task, completed=done, total=total)


def _write_coloured(lines: Iterable[Line], stream: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, highlight=False, soft_wrap=True)
    with writing_to(stream):
        for line in lines:
            console.print(Text.assemble(*((text, COLOURS.get(style, "")) for text, style in line)))
        stream.flush()
