"""Wrapped calls: writers, `out=`, exports, custom Functions, backwards."""
