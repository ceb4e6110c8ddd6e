"""Numbers of bytes in words."""

from __future__ import annotations

import pytest

from tensafe.findings import size


@pytest.mark.parametrize(
    ("nbytes", "words"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1536, "1.5 KiB"),
        (1_023_000, "999 KiB"),
        (1_024_000, "1000 KiB"),
        (2**20 - 1, "1024 KiB"),
        (3 * 2**20, "3 MiB"),
        (5000 * 2**30, "5000 GiB"),
    ],
)
def test_no_size_is_told_as_a_power(nbytes: int, words: str) -> None:
    assert size(nbytes) == words
