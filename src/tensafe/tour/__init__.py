"""The tour: every technique of the guides on views, copies and in-place operations, run live."""

from __future__ import annotations

from tensafe.tour import copying, graphs, in_place, views
from tensafe.tour.stop import Stop

STOPS: tuple[Stop, ...] = (*views.STOPS, *copying.STOPS, *in_place.STOPS, *graphs.STOPS)
