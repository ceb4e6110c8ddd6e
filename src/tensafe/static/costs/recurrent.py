"""The output of recurrent layers, whose order in memory `batch_first` decides."""

from __future__ import annotations

import ast

from tensafe.ops import words
from tensafe.static import forms
from tensafe.static.forms import Form
from tensafe.static.machine import Machine
from tensafe.static.values import Constant, Layer, Memory, Sequence, Value

LAYERS = words("LSTM GRU RNN")


def lay_out(m: Machine, layer: Layer, result: Value, node: ast.Call) -> None:
    """`output, state = layer(x)`: the output is computed step by step, and only turned for `batch_first`."""
    output = result.items[0] if type(result) is Sequence and result.items else None
    if type(output) is not Memory:
        return
    steps = forms.unknown_sizes(3)
    first = layer.options.get("batch_first")
    if first is None or (type(first) is Constant and not first.value):
        output.form = Form(steps)
    elif type(first) is Constant:
        output.form = Form(forms.permuted(steps, [1, 0, 2]), None, node, m.frame)
