"""The static engine: an abstract interpreter over source text; imports neither torch nor the rules."""

from tensafe.static.engine import examine as examine
