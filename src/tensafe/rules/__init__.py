"""The catalogue: one file per rule; importing the room loads no rule."""

from tensafe.rules._examples import Bad as Bad
from tensafe.rules._examples import Good as Good
