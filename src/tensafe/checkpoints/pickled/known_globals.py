"""Names that pickles import, as data: what torch allows by default, what is harmless, what is dangerous."""

from __future__ import annotations

_DTYPES = [
    "bfloat16",
    "bits16",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "bool",
    "complex128",
    "complex32",
    "complex64",
    "float16",
    "float32",
    "float4_e2m1fn_x2",
    "float64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "int1",
    "int16",
    "int2",
    "int3",
    "int32",
    "int4",
    "int5",
    "int6",
    "int64",
    "int7",
    "int8",
    "qint32",
    "qint8",
    "quint2x4",
    "quint4x2",
    "quint8",
    "uint1",
    "uint16",
    "uint2",
    "uint3",
    "uint32",
    "uint4",
    "uint5",
    "uint6",
    "uint64",
    "uint7",
    "uint8",
]
_QSCHEMES = [
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
]
_PLAIN = ["BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"]
_QUANTISED_AND_COMPLEX = [
    "ComplexDouble",
    "ComplexFloat",
    "QInt32",
    "QInt8",
    "QUInt2x4",
    "QUInt4x2",
    "QUInt8",
]
_SPARSE = ["BFloat16", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"]
_REBUILDS = [
    "device_tensor_from_cpu_tensor",
    "device_tensor_from_numpy",
    "meta_tensor_no_storage",
    "nested_tensor",
    "parameter",
    "parameter_with_state",
    "qtensor",
    "sparse_tensor",
    "tensor",
    "tensor_v2",
    "tensor_v3",
    "wrapper_subclass",
]

WEIGHTS_ONLY = frozenset(
    [
        "_codecs.encode",
        "torch.cuda.ComplexDoubleStorage",
        "torch.cuda.ComplexFloatStorage",
        "builtins.bytearray",
        "builtins.complex",
        "builtins.set",
        "collections.Counter",
        "collections.OrderedDict",
        "torch.Size",
        "torch.Tensor",
        "torch._tensor._rebuild_from_type_v2",
        "torch.device",
        "torch.nn.parameter.Parameter",
        "torch.serialization._get_layout",
        "torch.storage.TypedStorage",
        "torch.storage.UntypedStorage",
        *(f"torch.{name}" for name in (*_DTYPES, *_QSCHEMES)),
        *(f"torch.{place}{name}Tensor" for place in ("", "cuda.") for name in _PLAIN),
        *(f"torch.{place}{name}Storage" for place in ("", "cuda.") for name in _PLAIN),
        *(f"torch.{name}Storage" for name in _QUANTISED_AND_COMPLEX),
        *(f"torch.{place}sparse.{name}Tensor" for place in ("", "cuda.") for name in _SPARSE),
        *(f"torch._utils._rebuild_{name}" for name in _REBUILDS),
    ]
)
"""What `torch.load(weights_only=True)` of torch 2.13 takes by default; a test compares it with torch."""

HARMLESS = frozenset(
    [
        *(
            f"builtins.{name}"
            for name in [
                "bool",
                "bytes",
                "dict",
                "float",
                "frozenset",
                "int",
                "list",
                "range",
                "slice",
                "str",
                "tuple",
            ]
        ),
        *(f"builtins.{name}" for name in ["NoneType", "Ellipsis", "object"]),
        *(
            f"numpy.{core}.multiarray.{name}"
            for core in ("core", "_core")
            for name in ("_reconstruct", "scalar")
        ),
        *(f"numpy.{core}.numeric._frombuffer" for core in ("core", "_core")),
        *(
            f"numpy.{name}"
            for name in ["ndarray", "dtype", "bool_", "bool", "float16", "float32", "float64", "complex64"]
        ),
        *(
            f"numpy.{name}"
            for name in [
                "complex128",
                "int8",
                "int16",
                "int32",
                "int64",
                "uint8",
                "uint16",
                "uint32",
                "uint64",
            ]
        ),
        *(f"numpy.random._pickle.{name}" for name in ("__randomstate_ctor", "__generator_ctor")),
        "numpy.random._pickle.__bit_generator_ctor",
        "collections.defaultdict",
        "collections.deque",
        "copyreg._reconstructor",
        "copyreg.__newobj__",
        "functools.partial",  # calls what it is given, which is judged by itself
        "datetime.date",
        "datetime.datetime",
        "datetime.timedelta",
        "datetime.timezone",
        "decimal.Decimal",
        "fractions.Fraction",
        "uuid.UUID",
        "types.SimpleNamespace",
        "pathlib.PosixPath",
        "pathlib.PurePosixPath",
        "pathlib.WindowsPath",
        "pathlib.PureWindowsPath",
        "torch._tensor._rebuild_from_type",
        "torch.tensor._rebuild_from_type",
        "torch._utils._rebuild_sparse_csr_tensor",
        "torch._utils._rebuild_xla_tensor",
        "torch.nn.parameter.Buffer",
        *(
            f"torch.jit._pickle.{name}"
            for name in [
                "build_intlist",
                "build_tensorlist",
                "build_doublelist",
                "build_boollist",
                "build_tensor_from_id",
                "restore_type_tag",
            ]
        ),
        "torch.storage._load_from_bytes",  # a pickle within the pickle: looked into as well
        *(
            f"torch.{name}"
            for name in ["strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]
        ),
        *(
            f"torch.{name}"
            for name in ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"]
        ),
        "torch.nested._internal.nested_tensor._rebuild_njt",
        "torch._dynamo.decorators._DimRange",
        "torch.nested._internal.nested_tensor.NestedTensor",
        "torch.distributed.tensor.DTensor",
        "torch.distributed.device_mesh.DeviceMesh",
        *(
            f"torch.distributed.tensor._dtensor_spec.{name}"
            for name in ("DTensorSpec", "TensorMeta", "ShardOrderEntry")
        ),
        *(
            f"torch.distributed.tensor.placement_types.{name}"
            for name in ("Partial", "Replicate", "Shard", "_StridedShard")
        ),
        *(f"torch.distributed._mesh_layout.{name}" for name in ("_FlatLayout", "_MeshLayout")),
        *(
            f"torch.distributed.checkpoint.metadata.{name}"
            for name in [
                "Metadata",
                "MetadataIndex",
                "TensorProperties",
                "TensorStorageMetadata",
                "BytesStorageMetadata",
                "ChunkStorageMetadata",
                "StorageMeta",
                "_MEM_FORMAT_ENCODING",
            ]
        ),
        "torch.distributed.checkpoint.filesystem._StorageInfo",
    ]
)
HARMLESS_MODULES = frozenset(
    ["numpy.dtypes", "numpy.random.bit_generator"]
    + [f"numpy.random.{name}" for name in ("_mt19937", "_pcg64", "_philox", "_sfc64")]
)
REACHED = frozenset(
    [
        "os",
        "posix",
        "nt",
        "sys",
        "subprocess",
        "builtins",
        "importlib",
        "pickle",
        "socket",
        "shutil",
        "ctypes",
        "runpy",
        "pty",
        "marshal",
        "io",
    ]
)
"""Modules that are dangerous under any path: `torch.serialization` has an attribute `os`."""

_RUNS = "runs a command or a program"
_EVALUATES = "runs code given as text or bytes"
_LOADS = "loads a pickle or a library, which runs code"
_FILES = "opens, writes or removes files"
_NET = "opens connections"
_REACHES = "fetches any attribute, which reaches any function"

DANGEROUS_MODULES = {
    **dict.fromkeys(
        ["os", "posix", "nt", "subprocess", "pty", "commands", "popen2", "_posixsubprocess"], _RUNS
    ),
    **dict.fromkeys(
        ["multiprocessing", "concurrent", "asyncio", "pip", "ensurepip", "venv", "distutils"], _RUNS
    ),
    **dict.fromkeys(["setuptools", "platform", "idlelib", "antigravity"], _RUNS),
    **dict.fromkeys(
        ["sys", "gc", "inspect", "_xxsubinterpreters", "threading", "_thread", "signal"], _REACHES
    ),
    **dict.fromkeys(["operator", "_operator", "functools", "_functools", "types"], _REACHES),
    **dict.fromkeys(["builtins", "__builtin__", "__builtins__"], "runs one of Python's own functions"),
    **dict.fromkeys(
        ["importlib", "imp", "_imp", "pkgutil", "zipimport", "runpy", "_frozen_importlib"], _LOADS
    ),
    **dict.fromkeys(
        ["pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"], _LOADS
    ),
    **dict.fromkeys(["ctypes", "_ctypes", "cffi", "jsonpickle", "copyreg"], _LOADS),
    **dict.fromkeys(["code", "codeop", "codecs", "_codecs", "bdb", "pdb", "profile", "cProfile"], _EVALUATES),
    **dict.fromkeys(
        ["timeit", "trace", "doctest", "unittest", "lib2to3", "logging.config", "xmlrpc"], _EVALUATES
    ),
    **dict.fromkeys(["IPython", "pydoc", "test", "py_compile", "compileall", "site", "turtle"], _EVALUATES),
    **dict.fromkeys(
        ["io", "_io", "shutil", "tempfile", "glob", "fileinput", "linecache", "mmap", "sqlite3"], _FILES
    ),
    **dict.fromkeys(["tarfile", "zipfile", "gzip", "bz2", "lzma", "pathlib", "nturl2path"], _FILES),
    **dict.fromkeys(["socket", "_socket", "ssl", "http", "httplib", "urllib", "urllib2", "requests"], _NET),
    **dict.fromkeys(["aiohttp", "ftplib", "smtplib", "telnetlib", "poplib", "imaplib", "nntplib"], _NET),
    **dict.fromkeys(["socketserver", "xmlrpclib", "paramiko", "httpx", "urllib3"], _NET),
    "webbrowser": "opens a browser",
    "torch.hub": "downloads code and runs it",
    "torch.jit": _LOADS,
    "torch.package": _LOADS,
    "torch.ops": _LOADS,
    "torch.classes": _LOADS,
    "torch.utils.cpp_extension": "compiles code and loads it",
    "torch.utils.collect_env": _RUNS,
    "torch.utils.bottleneck": _EVALUATES,
    "torch.utils.data.datapipes": _EVALUATES,
    "torch.utils._config_module": _LOADS,
    "torch.utils.model_zoo": "downloads code and runs it",
    "torch._inductor": "compiles code and loads it",
    "torch._dynamo": _EVALUATES,
    "torch.fx": _EVALUATES,
    "torch.distributed.rpc": _EVALUATES,
    "torch.distributed.elastic": _RUNS,
    "torch.distributed.run": _RUNS,
    "torch.distributed.launch": _RUNS,
    "torch.multiprocessing": _RUNS,
    "torch.serialization": _LOADS,
    "torch.testing": _EVALUATES,
    "numpy.testing": _EVALUATES,
    "numpy.f2py": "compiles code and loads it",
    "numpy.distutils": _RUNS,
    "numpy.ctypeslib": _LOADS,
    "numpy.lib": _FILES,
    "scipy.io": _FILES,
    "pandas.io": _LOADS,
}
"""By module, with everything below it, unless the name is one of those above."""

DANGEROUS_NAMES = {
    **dict.fromkeys(
        [f"builtins.{name}" for name in ["eval", "exec", "compile", "execfile", "breakpoint", "apply"]],
        _EVALUATES,
    ),
    **dict.fromkeys(
        [
            f"builtins.{name}"
            for name in ["getattr", "setattr", "delattr", "globals", "locals", "vars", "__import__", "type"]
        ],
        _REACHES,
    ),
    "builtins.open": _FILES,
    **dict.fromkeys(
        [f"operator.{name}" for name in ("attrgetter", "itemgetter", "methodcaller")],
        _REACHES,
    ),
    **dict.fromkeys(
        [
            f"numpy.{name}"
            for name in ["load", "loads", "save", "savez", "savetxt", "loadtxt", "genfromtxt", "fromfile"]
        ],
        "reads or writes files, pickles among them",
    ),
    **dict.fromkeys([f"numpy.{name}" for name in ("memmap", "vectorize", "fromregex", "source")], _FILES),
    "torch.load": _LOADS,
    "torch.save": _FILES,
    "torch.from_file": _FILES,
    "torch.compile": _EVALUATES,
    "torch.storage._new_shared": _FILES,
    "torch.storage.UntypedStorage.from_file": _FILES,
    "torch._C._import_ir_module": _LOADS,
    "pandas.read_pickle": _LOADS,
    "pandas.eval": _EVALUATES,
}
