"""One self-contained page: a policy that lets nothing in and nothing out, its data and its script."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tensafe import __version__
from tensafe.report.html.assets import asset, source_hash
from tensafe.report.html.elements import Html, element, void


def document(
    title: str,
    body: Html,
    data: object = None,
    script: str = "",
    sheets: Sequence[str] = (),
    styles: Sequence[str] = ("page.css",),
    language: str = "en",
) -> str:
    """A whole page that works from a file, offline: no link, no frame, no request.

    `data` is what the script reads, as JSON in an inert block; `script` names a file beside this one.
    `styles` names the style sheets beside it. `sheets` are the texts of style elements in the body, as
    fragments for notebooks have them; style attributes work then, too. The text is ASCII, the same page
    however a console or a pipe writes it down.
    """
    style = "".join(map(asset, styles))
    code = asset(script) if script else ""
    head = element(
        "head",
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=_policy(code, [style, *sheets])),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        void("meta", name="referrer", content="no-referrer"),
        void("meta", name="generator", content=f"tensafe {__version__}"),
        element("title", title),
        element("style", Html(style)),
    )
    block = [_data_block(data)] if code and data is not None else []
    scripts = [*block, element("script", Html(code))] if code else []
    page = element("html", head, element("body", body, *scripts), lang=language)
    return f"<!DOCTYPE html>\n{page}\n".encode("ascii", "xmlcharrefreplace").decode("ascii")


def _policy(code: str, sheets: Sequence[str]) -> str:
    """Everything is forbidden but the script and the style sheets that are named by their hashes."""
    scripts = source_hash(code) if code else "'none'"
    styles = " ".join(map(source_hash, sheets))
    attributes = "style-src-attr 'unsafe-inline'; " if len(sheets) > 1 else ""
    allowed = f"style-src {styles}; {attributes}script-src {scripts}"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _data_block(data: object) -> Html:
    return element("script", Html(inert_json(data)), type="application/json", id="data")


def inert_json(data: object) -> str:
    """JSON in which no character can end a script element, start a comment, or leave ASCII."""
    plain = json.dumps(data, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
