"""Damages files, the same way each time: flips, cuts, splices, instructions put in, sizes made huge."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Callable

HUGE = [0, 1, 0x7F, 0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]
SNIPPETS = [
    b"cos\nsystem\n(Vtouch PWNED\ntR",
    b"c__builtin__\neval\n(Vopen('PWNED','w')\ntR",
    b"cposix\nsystem\nX\x0b\x00\x00\x00touch PWNED\x85R",
    b"\x8c\x05posix\x8c\x06system\x93\x8c\x0btouch PWNED\x85R",
    b"(i__builtin__\nexec\n.",
    b"h\xff",
    b"j\xff\xff\xff\xff",
    b"(" * 5000,
    b"]" * 2000 + b"\x85" * 2000,
    b"B\xff\xff\xff\xff",
    b"\x8e" + b"\xff" * 8,
    b"\x8b\xff\xff\xff\x7f",
    b"\x8b\xff\xff\xff\xff",
    b"X\xff\xff\xff\xff",
    b"\x95" + b"\xff" * 8,
    b"K\x01K\x02K\x03\x87",
    b"0" * 20,
    b"l1e",
    b"Q",
    b"\x81",
    b"b",
    b"s",
    b"u",
    b"a",
    b"2" * 500,
    b"\x8a\x08" + b"\xff" * 7 + b"\x7f",
    b"\x80\xff",
    b".",
]
Mutation = Callable[[bytes, random.Random], bytes]


def flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice([1, 2, 8, 40])):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(1, len(data))]


def cut_within(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.randrange(1, 200) :]


def splice(data: bytes, chance: random.Random) -> bytes:
    start, place = chance.randrange(len(data)), chance.randrange(len(data))
    return data[:place] + data[start : start + chance.randrange(1, 400)] + data[place:]


def number(data: bytes, chance: random.Random) -> bytes:
    value, form = chance.choice(HUGE), chance.choice(["<Q", "<I", "<H", ">Q"])
    raw = struct.pack(form, value % 2 ** (8 * struct.calcsize(form)))
    place = chance.choice([0, chance.randrange(len(data)), max(0, len(data) - chance.randrange(1, 120))])
    return data[:place] + raw + data[place + len(raw) :]


def snippet(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + chance.choice(SNIPPETS) + data[place:]


def digits(data: bytes, chance: random.Random) -> bytes:
    """Another number where digits stand: shapes and offsets in JSON and in array headers."""
    places = [index for index, byte in enumerate(data[:4096]) if 48 <= byte < 58]
    if not places:
        return flip(data, chance)
    place = chance.choice(places)
    return data[:place] + str(chance.choice([-1, 0, *HUGE, 10**40])).encode() + data[place + 1 :]


def within_zip(mutation: Mutation) -> Mutation:
    """Damage one record and pack the archive again, so that the damage is not in the zip file."""

    def mutate(data: bytes, chance: random.Random) -> bytes:
        if not zipfile.is_zipfile(io.BytesIO(data)):
            return mutation(data, chance)
        file = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
            pickles = [name for name in old.namelist() if name.endswith((".pkl", ".npy"))]
            chosen = chance.choice(pickles)
            for name in old.namelist():
                raw = old.read(name)
                new.writestr(name, mutation(raw, chance) if name == chosen and raw else raw)
        return file.getvalue()

    return mutate


PLAIN: list[Mutation] = [flip, cut, cut_within, splice, number, snippet, digits]
MUTATIONS: list[Mutation] = [*PLAIN, *map(within_zip, PLAIN), *map(within_zip, [snippet, number, flip])]
