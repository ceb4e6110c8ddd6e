"""Every operation of torch's own `op_db` on its own samples: a small program for each, run plain and watched.

A program calls the operation as people spell it (function, method, operator, in place, into `out=`), with
backward where autograd has one. What came out is compared bitwise: values, gradients, layout, and the version
counters of what went in.
"""

from __future__ import annotations

import functools
import linecache
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import Any

import torch
from torch.testing._internal.common_utils import set_rng_seed
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_leaves, tree_map

import tensafe
from runtime.outcomes import held, told
from tensafe.findings import Severity

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.int64, torch.bool)
"""The first of these that an operation takes is used."""

PROGRAM = """\
import torch

trained = torch.ones((), requires_grad=True)


def called(call, sample):
    return call(sample.input, *sample.args, **sample.kwargs)


def differentiated(call, sample, leaves, outputs, weights):
    result = call(sample.input, *sample.args, **sample.kwargs)
    reached = outputs(result)
    torch.autograd.backward(reached, [weights(output) for output in reached])
    return result, [leaf.grad for leaf in leaves]


def in_place_while_saved(call, sample):
    copied = sample.input.detach().clone()
    pending = copied * trained
    call(copied, *sample.args, **sample.kwargs)
    return copied, pending


def in_place_differentiated(call, sample, leaves, outputs, weights):
    copied = sample.input.clone()
    call(copied, *sample.args, **sample.kwargs)
    reached = outputs(copied)
    torch.autograd.backward(reached, [weights(output) for output in reached])
    return copied, [leaf.grad for leaf in leaves]


def into(sample, out):
    result = torch.NAME(sample.input, *sample.args, out=out, **sample.kwargs)
    return result, out
"""


@dataclass
class Counts:
    """What was run and compared."""

    ops: set[str] = field(default_factory=set)
    samples: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    raised: int = 0
    unrepeatable: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        calls = ", ".join(f"{count} {way}" for way, count in self.calls.most_common())
        return (
            f"{len(self.ops)} operations, {self.samples} samples, {sum(self.calls.values())} calls "
            f"({calls}); {self.raised} raised the same in both; not repeatable in plain torch: "
            f"{', '.join(sorted(self.unrepeatable)) or 'none'}; {len(self.wrong)} differences and findings"
        )


Key = tuple[str, int]  # how it was called, and on which sample


class OpProgram:
    """The program of one operation; a file of its own, so that its lines are its own."""

    def __init__(self, op: OpInfo, most: int | None) -> None:
        self.op = op
        self.name = op.formatted_name
        self._most = most
        taken = op.supported_dtypes("cpu")
        self._dtype = next((dtype for dtype in DTYPES if dtype in taken), torch.float32)
        self._trains = op.supports_autograd and (self._dtype.is_floating_point or self._dtype.is_complex)
        function = _late(torch, op.name)
        self._is_named = function is not None and attrgetter(op.name)(torch) is op.op
        self._spellings = _present(
            ("function", function if self._is_named else op.op),
            ("method", _late_method(op.method_variant)),
            ("operator", op.operator_variant),
            *(("alias", _late(torch, alias.name)) for alias in op.aliases),
        )
        self._in_place_spellings = _present(
            ("in place", _late_method(op.inplace_variant)),
            ("in-place operator", op.inplace_operator_variant),
        )
        path = f"<string {self.name}>"
        text = PROGRAM.replace("NAME", op.name)
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        self._do: dict[str, Any] = {"__name__": "program"}
        exec(compile(text, path, "exec", dont_inherit=True), self._do)

    def run(self) -> dict[Key, Any]:
        """All that comes out of all its calls; an exception counts as what came out."""
        outcomes: dict[Key, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for way, call in self._ways():
                for number, sample in enumerate(self._samples(self._trains and "out" not in way)):
                    set_rng_seed(number)
                    try:
                        outcome = ("returned", call(sample, number))
                    except Exception as error:
                        outcome = ("raised", type(error).__name__, str(error).split("\n")[0][:120])
                    versions = [tensor._version for tensor in _tensors(_inputs(sample))]
                    outcomes[way, number] = held((outcome, versions, torch.get_rng_state()))
        return outcomes

    def _samples(self, trains: bool) -> Iterator[SampleInput]:
        """What `op.sample_inputs` gives, which looks for the name of a test in the frames each time."""
        set_rng_seed(0)
        return islice(self.op.sample_inputs_func(self.op, "cpu", self._dtype, trains), self._most)

    def _ways(self) -> Iterator[tuple[str, Callable[[SampleInput, int], Any]]]:
        for way, call in self._spellings:
            yield way, functools.partial(self._out_of_place, call)
        for way, call in self._in_place_spellings:
            yield f"{way}, saved before", functools.partial(self._in_place, call, "in_place_while_saved")
            if self._trains and self.op.supports_inplace_autograd:
                yield way, functools.partial(self._in_place, call, "in_place_differentiated")
        if self.op.supports_out and self._is_named:
            yield "out=", self._into

    def _out_of_place(self, call: Any, sample: SampleInput, number: int) -> Any:
        leaves = _leaves(sample)
        if not leaves:
            return self._do["called"](call, sample)
        outputs = functools.partial(_reached, sample.output_process_fn_grad)
        return self._do["differentiated"](call, sample, leaves, outputs, _weights)

    def _in_place(self, call: Any, way: str, sample: SampleInput, number: int) -> Any:
        if sample.broadcasts_input or not isinstance(sample.input, torch.Tensor):
            return None
        if way == "in_place_while_saved":
            return self._do[way](call, sample.transform(_detached))
        outputs = functools.partial(_reached, sample.output_process_fn_grad)
        return self._do[way](call, sample, _leaves(sample), outputs, _weights)

    def _into(self, sample: SampleInput, number: int) -> Any:
        expected = self.op(sample.input, *sample.args, **sample.kwargs)
        make = _no_elements if number % 2 else torch.zeros_like
        out = tree_map(lambda item: make(item) if isinstance(item, torch.Tensor) else item, expected)
        return self._do["into"](sample, tuple(out) if isinstance(out, tuple) else out)


AGAIN = 60
"""So often is an operation run in plain torch before a difference is ours."""


def compare(ops: list[OpInfo], most: int | None, counts: Counts) -> None:
    """Run the programs of these operations plain and then under one engine, and note every difference."""
    programs = [OpProgram(op, most) for op in ops]
    plain = [_digest(program.run()) for program in programs]
    with tensafe.watching() as seen:
        watched = [program.run() for program in programs]
    for finding in seen.findings:
        if finding.severity is not Severity.NOTICE:
            counts.wrong.append(f"{finding.at.path}:{finding.at.line}: {finding.code} {finding.message}")
    for item in seen.not_checked:
        if "failed" in item.why or "could not" in item.why:
            counts.wrong.append(f"{[program.name for program in programs]}: {item.what}: {item.why}")
    for program, expected, found in zip(programs, plain, watched, strict=True):
        _note(program, expected, _digest(found), counts)


def _note(program: OpProgram, plain: dict[Key, Any], watched: dict[Key, Any], counts: Counts) -> None:
    counts.ops.add(program.name)
    counts.samples += len({number for _, number in plain})
    counts.calls.update(way for way, _ in plain)
    counts.raised += sum(outcome[0][:1] == ("raised",) for outcome in plain.values())
    if plain == watched:
        return
    open_keys = {key for key in plain.keys() | watched.keys() if watched.get(key) != plain.get(key)}
    for other in _plain_again(program):
        varied = {key for key in plain if other[key] != plain[key]}
        if varied:
            counts.unrepeatable.add(program.name)
        open_keys -= varied
        if not open_keys:
            return
    for key in open_keys:
        counts.wrong.append(f"{program.name} {key}: {watched.get(key)} is not {plain.get(key)}")


def _plain_again(program: OpProgram) -> Iterator[dict[Key, Any]]:
    """The same in plain torch, at other addresses: LAPACK's last bits hang on how memory is aligned."""
    kept = []
    for shift in range(AGAIN):
        kept.append(torch.empty(1 + 13 * shift % 101))
        yield _digest(program.run())


def _inputs(sample: SampleInput) -> list[Any]:
    return tree_leaves((sample.input, sample.args, sample.kwargs))


def _tensors(items: list[Any]) -> list[torch.Tensor]:
    return [item for item in items if isinstance(item, torch.Tensor)]


def _leaves(sample: SampleInput) -> list[torch.Tensor]:
    return [item for item in _tensors(_inputs(sample)) if item.requires_grad and item.is_leaf]


def _reached(finish: Callable[[Any], Any], result: Any) -> list[torch.Tensor]:
    """The outputs from which a backward can start."""
    return [item for item in _tensors(tree_leaves(finish(result))) if item.requires_grad]


def _weights(output: torch.Tensor) -> torch.Tensor:
    """A gradient for an output, unlike from element to element."""
    if output.layout is not torch.strided or output.is_nested:
        return torch.ones_like(output)
    return torch.linspace(0.5, 1.5, output.numel()).reshape(output.shape).to(output.dtype)


def _detached(item: Any) -> Any:
    return item.detach() if isinstance(item, torch.Tensor) else item


def _no_elements(expected: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=expected.dtype)


def _late(owner: Any, name: str) -> Callable[..., Any] | None:
    """A call that looks the name up when it is made, as programs do; None where there is no such name."""
    try:
        attrgetter(name)(owner)
    except AttributeError:
        return None
    return lambda *args, **kwargs: attrgetter(name)(owner)(*args, **kwargs)


def _late_method(method: Any) -> Callable[..., Any] | None:
    return _late(torch.Tensor, method.__name__) if hasattr(method, "__name__") else method


def _present(*spellings: tuple[str, Any]) -> list[tuple[str, Callable[..., Any]]]:
    return [(way, call) for way, call in spellings if call is not None]


def _digest(outcomes: dict[Key, Any]) -> dict[Key, Any]:
    return {key: told(outcome) for key, outcome in outcomes.items()}
