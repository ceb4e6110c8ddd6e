"""Storages, extents and overlap, as integers: what shares which bytes, without touching one of them."""

from tensafe.memory.covered import Covered as Covered
from tensafe.memory.covered import covered as covered
from tensafe.memory.extent import Extent as Extent
from tensafe.memory.map import MemoryMap as MemoryMap
from tensafe.memory.map import NamedTensor as NamedTensor
from tensafe.memory.map import Storage as Storage
from tensafe.memory.overlap import Shared as Shared
from tensafe.memory.overlap import Undecided as Undecided
from tensafe.memory.overlap import meet as meet
from tensafe.memory.overlap import meet_itself as meet_itself
from tensafe.memory.packing import Packing as Packing
from tensafe.memory.packing import pack as pack
from tensafe.memory.part import Part as Part
