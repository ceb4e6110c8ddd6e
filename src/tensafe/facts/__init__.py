"""The vocabulary shared by both engines and all rules: no torch, no `ast`."""

from tensafe.facts.history import History as History
from tensafe.facts.memory import Memory as Memory
from tensafe.facts.memory import Reached as Reached
from tensafe.facts.words import Call as Call
from tensafe.facts.words import Certainty as Certainty
from tensafe.facts.words import Kind as Kind
from tensafe.facts.words import Moment as Moment
from tensafe.facts.words import Site as Site
from tensafe.facts.words import StorageId as StorageId
from tensafe.facts.words import Value as Value
