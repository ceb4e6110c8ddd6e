"""Small sound files of every format, to inspect and to damage."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as save_safetensors


def trees() -> dict[str, Any]:
    base = torch.arange(300.0).reshape(30, 10)
    layer = torch.nn.Linear(4, 3)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(4)).sum().backward()
    optimizer.step()
    return {
        "views": {"a": base[2:5], "b": base[4:9, ::2], "same": base[2:5], "half": torch.ones(3).bfloat16()},
        "training": {"model": layer.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3},
        "module": torch.nn.Sequential(layer, torch.nn.BatchNorm1d(3)),
        "others": {
            "sparse": torch.eye(3).to_sparse(),
            "array": np.arange(6.0).reshape(2, 3),
            "u16": torch.ones(3, dtype=torch.uint16),
            "meta": torch.ones(2, device="meta"),
            "conj": torch.ones(3, dtype=torch.complex64).conj(),
        },
    }


def saved(tree: Any, **how: Any) -> bytes:
    file = io.BytesIO()
    torch.save(tree, file, **how)
    return file.getvalue()


def arrays(*, packed: bool = False) -> bytes:
    file = io.BytesIO()
    some = {"a": np.arange(12.0).reshape(3, 4).T, "o": np.array([{"x": 1}, None], dtype=object)}
    (np.savez_compressed if packed else np.savez)(file, **some)
    return file.getvalue()


def array(value: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


def repacked(data: bytes) -> bytes:
    """A zip file with every record deflated."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return file.getvalue()


def seeds() -> dict[str, bytes]:
    """File names with their content."""
    found = {}
    for name, tree in trees().items():
        found[f"{name}.pt"] = saved(tree)
        found[f"{name}-4.pt"] = saved(tree, pickle_protocol=4)
        if name != "others":
            found[f"{name}-old.pt"] = saved(tree, _use_new_zipfile_serialization=False)
    found["deflated.pt"] = repacked(found["views.pt"])
    views = {name: tensor.clone() for name, tensor in trees()["views"].items()}
    found["plain.safetensors"] = save_safetensors(views, {"format": "pt"})
    for protocol in range(6):
        tree = {"tensor": torch.ones(3), "array": np.arange(4), "text": "word", "deep": [[[1], 2.5], {None}]}
        found[f"protocol{protocol}.pkl"] = pickle.dumps(tree, protocol)
    found |= {"some.npz": arrays(), "packed.npz": arrays(packed=True)}
    found |= {"one.npy": array(np.ones((3, 4))), "objects.npy": array(np.array([{}, 1], dtype=object))}
    found["records.npy"] = array(np.zeros(3, dtype=[("a", "<f4"), ("b", ">i2", (2,))]))
    script = io.BytesIO()
    torch.jit.save(torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(2)), script)
    found["script.pt"] = script.getvalue()
    return found


def write_folders(folder: Path) -> list[Path]:
    """A sharded and a distributed checkpoint."""
    import torch.distributed.checkpoint as dcp

    shards, distributed = folder / "shards", folder / "distributed"
    shards.mkdir()
    (shards / "model-1.safetensors").write_bytes(save_safetensors({"x": torch.ones(3)}))
    weights = {"x": "model-1.safetensors", "y": "model-2.safetensors"}
    (shards / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    state = {"model": {"w": torch.ones(4, 3)}, "step": torch.tensor(1), "lr": 0.1}
    dcp.save(state, checkpoint_id=str(distributed), no_dist=True)
    return [shards, distributed]
