"""Where text goes: colour, width and a progress bar on a terminal, plain text in a pipe."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from tensafe.report.style import COLOURS, Line, plain
from tensafe.report.text import PIPE_WIDTH

NARROWEST = 60


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody watches this stream."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def width_of(stream: TextIO) -> int:
    """How many columns a line may take."""
    return max(NARROWEST, shutil.get_terminal_size().columns) if is_terminal(stream) else PIPE_WIDTH


def wants_colour(stream: TextIO) -> bool:
    """Colour on a terminal, unless NO_COLOR is set; FORCE_COLOR colours a pipe too."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def write_lines(lines: Iterable[Line], stream: TextIO) -> None:
    """Print the lines, in colour where it is wanted."""
    if wants_colour(stream):
        _write_coloured(lines, stream)
    else:
        write_text(plain(lines), stream)


def write_text(text: str, stream: TextIO) -> None:
    """Print a text; characters that the stream cannot encode come out escaped."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def write_page(markdown: str, stream: TextIO) -> None:
    """A page of Markdown: typeset on a terminal, as it is in a pipe."""
    if not wants_colour(stream):
        write_text(markdown, stream)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(file=stream, width=min(width_of(stream), 100)).print(Markdown(markdown))


@contextlib.contextmanager
def progress(what: str, stream: TextIO) -> Iterator[Callable[[int, int], None] | None]:
    """A bar for `progress(done, total)` on a terminal, None elsewhere; gone when the work is."""
    if not is_terminal(stream) or os.environ.get("TERM") == "dumb":
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(file=stream), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _write_coloured(lines: Iterable[Line], stream: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*((text, COLOURS.get(style, "")) for text, style in line)))
    stream.flush()
