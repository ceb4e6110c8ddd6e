"""Tests of the callbacks, with real trainings by the libraries that they are for."""
