"""For the operations that people ask about most: an example that a test runs, and what to write instead."""

from __future__ import annotations

from typing import Any

OWN = "to be sure of a copy: x.clone()"
PARTS = "an in-place write into a part raises where a gradient is wanted: autograd allows none for such views"
BACKUP = "a copy outside the graph: x.detach().clone()"


def _advice(*examples: str, see: str = "", note: str = "") -> dict[str, Any]:
    said = {"see": see, "note": note}
    return {"examples": examples} | {key: words for key, words in said.items() if words}


ADVICE: dict[str, dict[str, Any]] = {
    "reshape": _advice(
        "y = x.reshape(4, 3)  # a view of x",
        "y = x.t().reshape(12)  # a copy",
        see=f"{OWN}; of a view: x.view(), which raises where it would have to copy",
    ),
    "reshape_as": _advice(
        "y = x.reshape_as(torch.empty(4, 3))  # a view of x", see=f"{OWN}; of a view: x.view_as(other)"
    ),
    "flatten": _advice(
        "y = x.flatten()  # a view of x",
        "y = x.t().flatten()  # a copy",
        see=f"{OWN}; of a view: x.view(-1), which raises where it would have to copy",
    ),
    "ravel": _advice("y = x.ravel()  # a view of x", "y = x.t().ravel()  # a copy", see=OWN),
    "view": _advice(
        "y = x.view(4, 3)  # a view of x",
        "y = x.t().view(12)  # raises",
        see="x.reshape(), which copies where a view cannot be had",
    ),
    "contiguous": _advice(
        "y = x.contiguous()  # x itself",
        "y = x.t().contiguous()  # a copy",
        see=OWN,
    ),
    "to": _advice(
        "y = x.to(torch.float32)  # x itself",
        "y = x.to(torch.float64)  # a copy",
        see="to be sure of a copy: x.to(..., copy=True)",
    ),
    "type_as": _advice("y = x.type_as(torch.ones(1))  # x itself", see=OWN),
    "clone": _advice(
        "y = x.clone()  # a copy", see=BACKUP, note="copies the elements of x alone, and stays in the graph"
    ),
    "detach": _advice(
        "y = x.detach()  # a view of x",
        "x.detach().zero_()  # writes x",
        see="memory of its own: x.detach().clone()",
    ),
    "expand": _advice(
        "y = x[:1].expand(3, 4)  # a view of x",
        see="memory of its own: x.repeat()",
        note="several elements of the result are one place in memory: do not write into it",
    ),
    "expand_as": _advice(
        "y = x[:1].expand_as(x)  # a view of x",
        note="several elements of the result are one place in memory: do not write into it",
    ),
    "broadcast_to": _advice(
        "y = x[:1].broadcast_to(3, 4)  # a view of x",
        note="several elements of the result are one place in memory: do not write into it",
    ),
    "repeat": _advice("y = x.repeat(2, 1)  # a copy", see="without a copy: x.expand()"),
    "unfold": _advice(
        "y = x.unfold(1, 2, 1)  # a view of x",
        note="windows overlap in memory: do not write into them",
    ),
    "as_strided": _advice(
        "y = x.as_strided((2, 2), (4, 1))  # a view of x",
        note="strides are taken at their word: elements may overlap in memory",
    ),
    "numpy_T": _advice("y = x.T  # a view of x"),
    "t": _advice("y = x.t()  # a view of x"),
    "transpose": _advice("y = x.transpose(0, 1)  # a view of x"),
    "permute": _advice("y = x.permute(1, 0)  # a view of x"),
    "squeeze": _advice("y = x[None].squeeze(0)  # a view of x"),
    "unsqueeze": _advice("y = x.unsqueeze(0)  # a view of x"),
    "narrow": _advice("y = x.narrow(0, 0, 2)  # a view of x", see="a copy: x.narrow_copy()"),
    "select": _advice(
        "y = x.select(0, 1)  # a view of x", see="by an index tensor, a copy: x.index_select()"
    ),
    "split": _advice(
        "y = x.split(1)[0]  # a view of x",
        see="every part keeps the whole storage alive; part.clone()",
        note=PARTS,
    ),
    "chunk": _advice(
        "y = x.chunk(3)[0]  # a view of x",
        see="every part keeps the whole storage alive; part.clone()",
        note=PARTS,
    ),
    "unbind": _advice("y = x.unbind()[0]  # a view of x", note=PARTS),
    "diagonal": _advice(
        "y = x.diagonal()  # a view of x", "x.diagonal().zero_()  # writes x", see="torch.diag copies"
    ),
    "diag": _advice("y = x.diag()  # a copy", see="a view: x.diagonal()"),
    "real": _advice(
        "y = x.real  # x itself", note="of a complex tensor a view, of a real one the tensor itself"
    ),
    "cat": _advice("y = torch.cat([x, x])  # a copy", note="copies also where there is one tensor alone"),
    "stack": _advice("y = torch.stack([x, x])  # a copy"),
    "masked_select": _advice("y = x.masked_select(x > 3)  # a copy", see="to write: x.masked_fill_()"),
    "index_select": _advice("y = x.index_select(0, index)  # a copy", see="to write: x.index_copy_()"),
    "gather": _advice(
        "y = x.gather(0, torch.zeros(1, 4, dtype=torch.int64))  # a copy", see="to write: x.scatter_()"
    ),
    "where": _advice("y = torch.where(x > 3, x, 0.0)  # a copy"),
    "add_": _advice("y = x.add_(1)  # writes x"),
    "zero_": _advice("x.zero_()  # writes x", "x[0].zero_()  # writes x", "x[mask].zero_()  # x unchanged"),
    "fill_": _advice("x.fill_(2.0)  # writes x"),
    "copy_": _advice(
        "x.copy_(torch.ones(4))  # writes x", note="copies the elements; x joins the graph of src"
    ),
    "masked_fill_": _advice("x.masked_fill_(x > 3, 0.0)  # writes x"),
    "masked_fill": _advice("y = x.masked_fill(x > 3, 0.0)  # a copy"),
    "relu_": _advice("x.sub_(5).relu_()  # writes x"),
    "item": _advice("n = x.sum().item()  # a value", note="waits for the device; cuts the graph"),
    "positive": _advice("y = +x  # x itself"),
}
