"""The list of watchers; a new one is named here and nowhere else."""

from __future__ import annotations

from tensafe.runtime.alias_writes import AliasWrites
from tensafe.runtime.array_sharing import ArraySharing
from tensafe.runtime.copies_made import CopiesMade
from tensafe.runtime.leaks import Leaks
from tensafe.runtime.looking import Looking
from tensafe.runtime.overlaps import Overlaps
from tensafe.runtime.process_sharing import ProcessSharing
from tensafe.runtime.refusals import Refusals
from tensafe.runtime.repeats import Repeats
from tensafe.runtime.saving import Saving
from tensafe.runtime.serialised import Serialised
from tensafe.runtime.ties import Ties
from tensafe.runtime.watcher import Context, Watcher


def make_watchers(context: Context) -> tuple[Watcher, ...]:
    """All watchers of one engine."""
    return (
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
