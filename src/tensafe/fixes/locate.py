"""Finds the node that a site means, also when the site has no columns or begins inside the node."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from tensafe.findings import Site
from tensafe.fixes.edits import Refusal
from tensafe.fixes.source import Node, Source


def node_at(source: Source, site: Site, accept: Callable[[ast.AST], bool]) -> Node:
    """The accepted node with exactly this span, else the only one that it can mean.

    CPython lets a call that spans lines begin at its last attribute, so a node that ends where the site
    ends is the second choice.
    """
    wanted = source.site_span(site)
    if wanted is None:
        raise Refusal("the file changed since")
    index, (start, end) = source.index, wanted
    spans = index.spans
    same_end = [node for node in index.ending_at(end) if accept(node)]
    choices = (
        [node for node in same_end if spans[node][0] == start],
        [node for node in same_end if spans[node][0] <= start and site.end_column],
        [node for node in index.inside(start, end) if accept(node)],
        [node for node in _around(source, start, end) if accept(node)] if site.end_column else [],
    )
    for number, found in enumerate(choices):
        if number < 2 and found:
            return min(found, key=lambda node: spans[node][1] - spans[node][0])
        if len(found) == 1:
            return _outside_strings(source, found[0])
        if found:
            break
    raise Refusal(
        "the place cannot be told apart from others on its line" if any(choices) else "nothing to fix here"
    )


def _around(source: Source, start: int, end: int) -> Iterator[Node]:
    """The nodes that hold the whole span: spans nest, so they lie on the way up from the last that begins."""
    last = source.index.last_before(start)
    for node in (last, *source.parents(last)) if last else ():
        if isinstance(node, Node):
            first, past = source.index.spans[node]
            if first <= start and end <= past:
                yield node


def _outside_strings(source: Source, node: Node) -> Node:
    """Before Python 3.12 the positions inside an f-string were not real ones."""
    if any(isinstance(parent, ast.JoinedStr) for parent in source.parents(node)):
        raise Refusal("it stands inside an f-string")
    return node
