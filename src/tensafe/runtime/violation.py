"""The error that a backward raises, in PyTorch's opening words, with both places named."""

from __future__ import annotations

from pathlib import Path

from tensafe.facts import Call, Kind, Site
from tensafe.runtime.graphs.saved import Saved
from tensafe.runtime.storages.ledger import LedgerHistory


def message(saved: Saved, call: Call | None, history: LedgerHistory | None) -> str:
    """PyTorch's message for this tensor, then who saved it, who changed it, and what to do."""
    tensor = saved.tensor
    opening = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{tensor.type()} {list(tensor.shape)}] is at version {tensor._version}; "
        f"expected version {saved.version} instead."
    )
    if call is None or history is None:
        return opening
    value = call.values["saved"]
    kept = value.last(Kind.SAVED)
    write = kept and history.last_write(value.storages, since=kept)
    places = []
    if kept and kept.site:
        places.append(f"saved for {kept.op} at {_where(kept.site)}")
    if write and write.site:
        places.append(f"changed by `{write.op}` at {_where(write.site)}")
    else:
        places.append("changed by a call that tensafe does not see")
    return f"{opening} tensafe: {', '.join(places)}. Use the out-of-place form there, or write to a clone()."


def _where(site: Site) -> str:
    return f"{Path(site.path).name}:{site.line}"
