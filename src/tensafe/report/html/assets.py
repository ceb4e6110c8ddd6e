"""The style sheets and the script that lie beside this file."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """The text of `page.css`, `page.js`, …, in ASCII: other characters as that language writes them."""
    text = files("tensafe.report.html").joinpath(name).read_text(encoding="utf-8")
    if name.endswith(".css"):
        return "".join(one if one.isascii() else f"\\{ord(one):x} " for one in text)
    return "".join(one if one.isascii() else json.dumps(one)[1:-1] for one in text)


def source_hash(content: str) -> str:
    """How a Content-Security-Policy names the one inline text that it lets through."""
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
