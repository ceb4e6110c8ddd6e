"""The list of watchers; a new one is named here and nowhere else."""

from __future__ import annotations

from tensafe.runtime.arrays.sharing import ArraySharing
from tensafe.runtime.costs.copies_made import CopiesMade
from tensafe.runtime.costs.looking import Looking
from tensafe.runtime.costs.serialised import Serialised
from tensafe.runtime.graphs.leaks import Leaks
from tensafe.runtime.processes.saving import Saving
from tensafe.runtime.processes.sharing import ProcessSharing
from tensafe.runtime.references.ties import Ties
from tensafe.runtime.refusals.watching import Refusals
from tensafe.runtime.storages.pictures import WrittenExtents
from tensafe.runtime.watcher import Context, Watcher
from tensafe.runtime.writes.alias_writes import AliasWrites
from tensafe.runtime.writes.overlaps import Overlaps
from tensafe.runtime.writes.repeats import Repeats


def make_watchers(context: Context) -> tuple[Watcher, ...]:
    """All watchers of one engine."""
    return (
        WrittenExtents(),
        Refusals(context),
        Overlaps(context),
        Repeats(context),
        ArraySharing(context),
        Ties(context),
        ProcessSharing(context),
        Saving(context),
        AliasWrites(context),
        Leaks(context),
        CopiesMade(context),
        Serialised(context),
        Looking(context),
    )
