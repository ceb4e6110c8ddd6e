"""The bodies of a long page's findings, compressed: the script puts one in when its finding is opened."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Sequence

from tensafe.report.html.elements import Html, element

AT_ONCE = 100
"""So many bodies are packed together."""
END = "\0"  # stands in no text: it is shown as an escape


def packed(bodies: Sequence[Html]) -> Iterator[Html]:
    """Inert blocks that only our script reads: markup as it was made here, deflated, in base64."""
    for start in range(0, len(bodies), AT_ONCE):
        markup = END.join(bodies[start : start + AT_ONCE])
        block = base64.b64encode(zlib.compress(markup.encode("utf-8", "backslashreplace"), 6)).decode()
        yield element("script", Html(block), type="text/plain", class_="bodies")
