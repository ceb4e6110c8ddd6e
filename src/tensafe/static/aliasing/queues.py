"""Tensors that are sent to another process and written afterwards; slices that share more than themselves."""

from __future__ import annotations

import ast
import re

from tensafe.facts import Certainty, Kind, Moment
from tensafe.facts import Value as Fact
from tensafe.static.aliasing.books import Sent
from tensafe.static.machine import Machine
from tensafe.static.values import TENSOR, Memory, Value

_QUEUE = re.compile(r"(^|[._])(q|queue|pipe|conn)\w*$|queue$", re.IGNORECASE)
_PROCESSES = re.compile(r"\bmultiprocessing\b")


def sent(m: Machine, receiver: ast.expr, value: Value, node: ast.Call) -> None:
    """`queue.put(x)`: the second time, `x` may be the same memory with other values."""
    if type(value) is not Memory or value.kind != TENSOR or not value.exact or len(value.storages) > 1:
        return
    if not _QUEUE.search(ast.unparse(receiver)) or not _PROCESSES.search(m.frame.source.text):
        return
    before = m.books.sent.get(node)
    m.books.sent[node] = Sent(value.storages[0], m.moment(Kind.SHARED, "", node, note="sent"))
    if before is None or before.storage != value.storages[0]:
        return
    write = m.past.last_write(value.storages, before.moment, m.path)
    site = write.moment.site if write is not None else None
    if write is not None and site is not None and m.books.tells((site.path, "resent", site.line)):
        values = {"shared": Fact(frozenset(), (before.moment,))}
        m.ask_at(site, Kind.SHARED, write.moment.op, values, "resent")


def shared(m: Machine, receiver: Memory, node: ast.Call) -> None:
    """`x[a:b].share_memory_()` moves all of `x`."""
    if receiver.kind != TENSOR or receiver.base is None or not receiver.exact:
        return
    made: tuple[Moment, ...] = ()
    values = {"shared": Fact(frozenset(), made, "the tensor that it is a part of")}
    m.put(
        Kind.SHARED,
        "Tensor.share_memory_",
        node,
        m.frame,
        values,
        certainty=Certainty.OFTEN_MEANT,
        note="slice",
    )
