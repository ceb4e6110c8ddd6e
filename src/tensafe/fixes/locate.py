"""Finds the node that a site means, also when the site has no columns or begins inside the node."""

from __future__ import annotations

import ast
from collections.abc import Callable

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
    nodes = [node for node in ast.walk(source.tree) if isinstance(node, Node) and accept(node)]
    spans = {node: source.span(node) for node in nodes}
    choices = (
        [node for node in nodes if spans[node] == wanted],
        [
            node
            for node in nodes
            if spans[node][1] == wanted[1] and spans[node][0] <= wanted[0] and site.end_column
        ],
        [node for node in nodes if wanted[0] <= spans[node][0] and spans[node][1] <= wanted[1]],
        [
            node
            for node in nodes
            if spans[node][0] <= wanted[0] and wanted[1] <= spans[node][1] and site.end_column
        ],
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


def _outside_strings(source: Source, node: Node) -> Node:
    """Before Python 3.12 the positions inside an f-string were not real ones."""
    if any(isinstance(parent, ast.JoinedStr) for parent in source.parents(node)):
        raise Refusal("it stands inside an f-string")
    return node
