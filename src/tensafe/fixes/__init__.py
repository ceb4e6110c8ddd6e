"""Findings and a source text in, the new text out: exact edits of spans, everything else byte for byte."""

from tensafe.fixes.apply import FixResult as FixResult
from tensafe.fixes.apply import Planned as Planned
from tensafe.fixes.apply import Refused as Refused
from tensafe.fixes.apply import apply as apply
from tensafe.fixes.apply import planned as planned
from tensafe.fixes.apply import until_still as until_still
