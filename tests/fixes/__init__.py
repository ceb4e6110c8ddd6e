"""Tests of the room `fixes`."""
