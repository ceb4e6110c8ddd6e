"""What an engine found and what it did not check, as data, to and from JSON."""

from tensafe.facts import Site as Site
from tensafe.findings.copies import CopyLine as CopyLine
from tensafe.findings.finding import Action as Action
from tensafe.findings.finding import AssignThroughIndex as AssignThroughIndex
from tensafe.findings.finding import Because as Because
from tensafe.findings.finding import CallInstead as CallInstead
from tensafe.findings.finding import Disallow as Disallow
from tensafe.findings.finding import DropCall as DropCall
from tensafe.findings.finding import Finding as Finding
from tensafe.findings.finding import Fix as Fix
from tensafe.findings.finding import NotChecked as NotChecked
from tensafe.findings.finding import OutOfPlace as OutOfPlace
from tensafe.findings.finding import SetKeyword as SetKeyword
from tensafe.findings.finding import Severity as Severity
from tensafe.findings.finding import Wrap as Wrap
from tensafe.findings.merging import Told as Told
from tensafe.findings.merging import merge as merge
from tensafe.findings.record import Record as Record
from tensafe.findings.record import alike as alike
from tensafe.findings.record import collapse as collapse
from tensafe.findings.record import from_json as from_json
from tensafe.findings.record import to_json as to_json
from tensafe.findings.size import size as size
