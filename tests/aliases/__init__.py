"""Tests of what live objects share, keep alive, and let one write."""
