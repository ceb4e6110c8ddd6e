"""Real bugs of the kinds serialization-bloat and shared-memory, each met by one call.

Each test is the intent of the case of the same name in `tests/cases/memory`, with the wrong line replaced.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

import tensafe


def test_saved_slice_writes_whole_tensor(tmp_path: Path) -> None:
    table = torch.zeros(250_000)
    path = tmp_path / "sample"
    path.write_bytes(tensafe.dumps(table[:100]))
    assert path.stat().st_size < 10_000
    assert tensafe.loads(path.read_bytes()).shape == (100,)


def test_shards_from_chunk_are_full_size(tmp_path: Path) -> None:
    state = {
        "in.weight": torch.randn(1024, 512),
        "in.bias": torch.randn(1024),
        "out.weight": torch.randn(512, 1024),
    }
    full = sum(tensor.nbytes for tensor in state.values())
    for rank in range(4):
        shard = {
            "in.weight": state["in.weight"].chunk(4, 0)[rank],
            "in.bias": state["in.bias"],
            "out.weight": state["out.weight"].chunk(4, 1)[rank],
        }
        path = tmp_path / f"rank{rank}"
        path.write_bytes(tensafe.dumps(shard))
        assert path.stat().st_size < full / 4 + 8_192
        loaded = tensafe.loads(path.read_bytes())
        assert all(torch.equal(loaded[name], shard[name]) for name in shard)


def test_prompt_embedding_cache_files(tmp_path: Path) -> None:
    with torch.no_grad():
        embeddings = nn.Embedding(100, 128)(torch.randint(100, (20, 77)))
    for number, embedding in enumerate(embeddings):
        (tmp_path / str(number)).write_bytes(tensafe.dumps(embedding))
    one = tensafe.loads((tmp_path / "3").read_bytes())
    assert torch.equal(one, embeddings[3])
    assert one.untyped_storage().nbytes() == one.nbytes


def test_tied_weights_exported_twice() -> None:
    embed, head = nn.Embedding(8000, 64), nn.Linear(64, 8000, bias=False)
    head.weight = embed.weight
    arrays = {
        name: tensor.numpy()
        for name, tensor in nn.ModuleDict({"embed": embed, "head": head}).state_dict().items()
    }
    data = tensafe.dumps(arrays)
    assert len(data) < 1.01 * embed.weight.nbytes
    loaded = tensafe.loads(data)
    assert numpy.shares_memory(loaded["embed.weight"], loaded["head.weight"])


class Targets(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 300

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float(index)])


def collate_as_bytes(samples: list[Any]) -> bytes:
    return tensafe.dumps(default_collate(samples))


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("few_descriptors")
def test_kept_batches_exhaust_file_descriptors() -> None:
    loader = DataLoader(Targets(), batch_size=1, num_workers=1, collate_fn=collate_as_bytes)
    kept = [tensafe.loads(batch) for batch in loader]
    assert torch.cat(kept).flatten().tolist() == list(map(float, range(300)))


class DecodedImages(Dataset[torch.Tensor]):
    """Decodes each image once, whichever worker asks first, in whichever epoch."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        cache = self.cache.tree
        if not cache["filled"][index]:
            cache["images"][index] = float(index)
            cache["decoded"][index] += 1
            cache["filled"][index] = True
        return torch.clone(cache["images"][index])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_cache_never_visible_in_parent(method: str) -> None:
    empty = {"images": torch.zeros(8, 4), "filled": torch.zeros(8, dtype=torch.bool)}
    with tensafe.share({**empty, "decoded": torch.zeros(8, dtype=torch.long)}) as cache:
        for _ in range(2):
            loader = DataLoader(
                DecodedImages(cache), batch_size=2, num_workers=1, multiprocessing_context=method
            )
            for _ in loader:
                pass
        assert cache.tree["decoded"].tolist() == [1] * 8
        assert cache.tree["images"][:, 0].tolist() == list(map(float, range(8)))
