"""The words with which both engines say what happened to tensors: Site, Moment, Value, Call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NewType

from tensafe.facts.memory import Memory

StorageId = NewType("StorageId", int)
"""Names one storage within one engine's run; never an address, which is reused after free."""


class Kind(str, Enum):
    """What can happen to a tensor."""

    MADE = "made"  # fresh memory
    VIEWED = "viewed"  # another tensor over the same memory
    COPIED = "copied"  # fresh memory with the contents of another tensor
    KEPT = "kept"  # a live reference was taken as if it were a snapshot
    WRITTEN = "written"
    SAVED = "saved"  # autograd keeps the tensor for a backward
    CUT = "cut"  # the value went on without its graph
    BACKWARD = "backward"  # a backward reads a saved tensor
    STARVED = "starved"  # parameters that were to be trained got no gradient
    STEPPED = "stepped"  # an optimizer wrote its parameters
    RESTORED = "restored"  # load_state_dict
    SERIALISED = "serialised"
    EXPORTED = "exported"  # an array or a raw pointer over the memory was handed out
    SHARED = "shared"  # put into memory that another process maps
    COMPARED = "compared"
    DISCARDED = "discarded"  # the last reference to a written tensor was dropped unread
    REFUSED = "refused"  # PyTorch raised instead of doing it
    OVERLAPPED = "overlapped"  # one operation wrote bytes that it also read, or wrote twice
    REPEATED = "repeated"  # one object under several places that should each have their own
    UNTIED = "untied"  # tensors that were to be one are two
    RETAINED = "retained"  # a graph is kept though its backward is done
    LEAKED = "leaked"  # gradients flowed where they are thrown away
    PINNED = "pinned"  # a small view keeps a large storage alive


class Certainty(str, Enum):
    """How sure an engine is of the facts it hands to a rule."""

    DID = "did"  # seen to happen
    MAY = "may"  # follows from the source, on a path that can be taken
    OFTEN_MEANT = "often meant"  # true, and quite possibly what the author wants


@dataclass(frozen=True, slots=True)
class Site:
    """A span of source text; lines and columns count from 1, `end_column` is one past the last character."""

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    function: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened to a tensor, where, and in which order.

    `op` is PyTorch's own name (`Tensor.add_`, `Module.state_dict`, `ExpBackward0`); `site` is None when no
    Python line of the program did it (a raw pointer, another library's kernel). `counted` says of a write
    whether autograd's version counter moved, so that PyTorch itself would notice.
    """

    kind: Kind
    op: str
    site: Site | None
    order: int
    counted: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of one tensor (or a bundle of them): its storages, how it came to be, how the user spells
    it.

    `trail` lists the moments that made this value what it is, oldest first.
    """

    storages: frozenset[StorageId]
    trail: tuple[Moment, ...] = ()
    label: str = ""
    in_graph: bool | None = None  # whether autograd has it in a graph; None when unknown

    def last(self, *kinds: Kind) -> Moment | None:
        """The latest moment of one of these kinds in the value's own past."""
        return next((moment for moment in reversed(self.trail) if moment.kind in kinds), None)


@dataclass(frozen=True, slots=True)
class Call:
    """A moment at which an engine stops and asks the rules, with the values that take part by role.

    | kind | roles |
    |---|---|
    | BACKWARD | `saved`: the tensor a backward reads, its SAVED moment in the trail |
    | RESTORED, COMPARED, STEPPED | `kept`: a live reference used as a copy, its KEPT moment in the trail |
    | DISCARDED | `written`: a temporary, its COPIED and WRITTEN moments in the trail |
    | STARVED | `cut`: its CUT moment in the trail; `parameters`: those that got no gradient (label) |
    | REFUSED | `target`: what was to be written, viewed, … and what led there; `operand`: what it took |
    | RETAINED | `kept`: its MADE and KEPT moments in the trail; the note counts the steps, if known |
    | LEAKED | `leak`: its MADE moment, where to detach; label: the parameters; note: which leak |
    | COPIED | `copy`: its COPIED moment; the note says how many bytes in how many calls, if known |
    | PINNED | `view`: its VIEWED and KEPT moments; the note counts views, bytes reached and dead |
    | SERIALISED | `saved`: its VIEWED moment, if known; the note counts dead and all bytes, calls |

    `note` says more in one word or number where a rule needs it: which refusal, how many bytes. `memory` is
    for people, who see it drawn: where the tensors of this moment lie, if the engine knows.
    """

    kind: Kind
    op: str
    site: Site | None
    order: int
    values: Mapping[str, Value] = field(default_factory=dict)
    certainty: Certainty = Certainty.DID
    note: str = ""
    memory: tuple[Memory, ...] = ()
