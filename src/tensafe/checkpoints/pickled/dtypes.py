"""Data types by the names that files give them, with the bytes of an element."""

from __future__ import annotations

from tensafe.checkpoints.pickled.values import Global, Made, Value

ITEMSIZES = {
    **dict.fromkeys(["bool", "int8", "uint8", "qint8", "quint8", "quint4x2", "quint2x4"], 1),
    **dict.fromkeys(["bits8", "bits1x8", "bits2x4", "bits4x2", "float4_e2m1fn_x2"], 1),
    **dict.fromkeys(
        ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"], 1
    ),
    **{f"{sign}int{bits}": 1 for sign in ("", "u") for bits in range(1, 8)},
    **dict.fromkeys(["int16", "uint16", "float16", "bfloat16", "bits16"], 2),
    **dict.fromkeys(["int32", "uint32", "float32", "qint32", "complex32"], 4),
    **dict.fromkeys(["int64", "uint64", "float64", "complex64"], 8),
    "complex128": 16,
}
"""By torch's names, without "torch."."""
OTHER_NAMES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "chalf": "complex32",
}
STORAGES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "BFloat16": "bfloat16",
    "ComplexDouble": "complex128",
    "ComplexFloat": "complex64",
    "QInt8": "qint8",
    "QInt32": "qint32",
    "QUInt8": "quint8",
    "QUInt4x2": "quint4x2",
    "QUInt2x4": "quint2x4",
    "Untyped": "uint8",
    "_Untyped": "uint8",
}
"""By the class of a storage, without "Storage"."""


def torch_dtype(value: Value) -> str | None:
    """`torch.float32` as "float32", None when the value is no dtype of torch."""
    if not isinstance(value, Global) or value.module != "torch":
        return None
    name = OTHER_NAMES.get(value.name, value.name)
    return name if name in ITEMSIZES else None


def storage_dtype(value: Value) -> str | None:
    """`torch.FloatStorage` as "float32"; a storage without a type counts bytes."""
    if not isinstance(value, Global) or not value.name.endswith("Storage"):
        return None
    return STORAGES.get(value.name.removesuffix("Storage"))


def is_untyped(value: Value) -> bool:
    return isinstance(value, Global) and value.name.endswith("UntypedStorage")


KINDS = {
    **{
        ("b", 1): "bool",
        ("c", 1): "S1",
        ("f", 16): "float128",
        ("f", 12): "float96",
        ("c", 32): "complex256",
    },
    **{("i", size): f"int{8 * size}" for size in (1, 2, 4, 8)},
    **{("u", size): f"uint{8 * size}" for size in (1, 2, 4, 8)},
    **{("f", size): f"float{8 * size}" for size in (2, 4, 8)},
    **{("c", size): f"complex{8 * size}" for size in (8, 16)},
}
WIDTHS = {"S": 1, "a": 1, "V": 1, "U": 4}
DEEPEST = 16


def numpy_dtype(code: str) -> tuple[str, int] | None:
    """The name and itemsize of NumPy's `"<f4"`; "object" for pointers, whose elements are pickled."""
    order = code[:1] if code[:1] in ("<", ">", "=", "|") else ""
    kind, digits = code[len(order) : len(order) + 1], code[len(order) + 1 :]
    if kind == "O":
        return "object", 8
    unit = digits.find("[")
    count = digits[:unit] if unit >= 0 else digits
    if not (count.isascii() and count.isdigit() and len(count) < 10):
        return None
    size = int(count)
    if kind in ("M", "m"):
        return ("datetime64" if kind == "M" else "timedelta64") + digits[unit:] * (unit >= 0), size
    if kind in WIDTHS:
        return f"{kind}{size}", size * WIDTHS[kind]
    name = KINDS.get((kind, size))
    return (name + ", big-endian" * (order == ">" and size > 1), size) if name else None


def array_dtype(descr: object, depth: int = 0) -> tuple[str, int] | None:
    """The same for what a `.npy` header says, which may be a list of fields."""
    if isinstance(descr, str):
        return numpy_dtype(descr)
    if not isinstance(descr, list) or depth > DEEPEST:
        return None
    total, has_objects = 0, False
    for field in descr:
        if not isinstance(field, tuple) or len(field) not in (2, 3):
            return None
        inner = array_dtype(field[1], depth + 1)
        if inner is None:
            return None
        count = 1
        for size in field[2] if len(field) == 3 and isinstance(field[2], tuple) else ():
            count *= size if isinstance(size, int) else 0
        total += inner[1] * count
        has_objects |= inner[0] == "object"
    return ("object" if has_objects else "record"), total


def pickled_dtype(value: Value) -> tuple[str, int] | None:
    """The dtype that a pickle builds: `numpy.dtype("f4", False, True)` with its state."""
    if isinstance(value, Global) and value.module.startswith("numpy"):
        return (value.name, ITEMSIZES[value.name]) if value.name in ITEMSIZES else None
    if not isinstance(value, Made) or value.name != "numpy.dtype" or not value.positional:
        return None
    code = value.positional[0]
    order = _item(value.states[-1] if value.states else None, 1)
    known = numpy_dtype((order if order in ("<", ">") else "") + code) if isinstance(code, str) else None
    if known is None or known[0] != f"V{known[1]}":
        return known
    fields = _item(value.states[-1] if value.states else None, 3)
    return ("record" if fields is not None else known[0]), known[1]


def _item(value: Value, index: int) -> Value:
    from tensafe.checkpoints.pickled.values import Tuple

    return value.items[index] if isinstance(value, Tuple) and len(value.items) > index else None
