"""Which shapes a tensor can be viewed in, against PyTorch's own answer on the meta device."""

from __future__ import annotations

import hypothesis.strategies as st
import torch
from hypothesis import given, settings
from torch import Tensor

from tensafe.aliases.layout import memory_format, view_as

SIZES = st.lists(st.sampled_from([1, 1, 2, 3, 4, 6, 0]), max_size=4)


@st.composite
def strided(draw: st.DrawFn) -> Tensor:
    """Permuted, cut, or of any strides at all."""
    sizes = draw(SIZES)
    if draw(st.booleans()):
        strides = draw(
            st.lists(st.sampled_from([0, 1, 2, 3, 4, 6, 12]), min_size=len(sizes), max_size=len(sizes))
        )
        return torch.empty(1000, device="meta").as_strided(sizes, strides)
    whole = torch.empty(sizes, device="meta").permute(draw(st.permutations(range(len(sizes)))))
    if whole.dim() and draw(st.booleans()):
        axis = draw(st.integers(0, whole.dim() - 1))
        whole = whole.narrow(axis, 0, max(0, whole.size(axis) - 1))
    return whole


@st.composite
def targets(draw: st.DrawFn, numel: int) -> list[int]:
    """Shapes of that many elements, most of the time."""
    rest, found = numel, []
    for _ in range(draw(st.integers(0, 3))):
        size = draw(st.sampled_from([n for n in range(1, rest + 1) if rest % n == 0] or [0, 1]))
        found.append(size)
        rest = rest // size if size else rest
    found.append(rest)
    if draw(st.integers(0, 3)) == 0:
        found[draw(st.integers(0, len(found) - 1))] = -1
    return draw(st.permutations(found))


@settings(max_examples=1500)
@given(st.data())
def test_a_view_exists_where_pytorch_gives_one_with_its_strides(data: st.DataObject) -> None:
    x = data.draw(strided())
    target = data.draw(targets(x.numel()))
    answer = view_as(tuple(x.shape), x.stride(), 4, target)
    try:
        view = x.view(target)
    except RuntimeError:
        assert not answer
        return
    assert answer.shape == tuple(view.shape)
    assert answer.strides is not None
    for size, ours, theirs in zip(view.shape, answer.strides, view.stride(), strict=True):
        assert ours == theirs or size == 1 or not x.numel()


def test_what_reshape_copies() -> None:
    answer = view_as((4, 5), (1, 4), 8, (-1,))
    assert answer.copied_nbytes == 160
    assert "dimension 0 has stride 1, where joining it to dimension 1 needs 20" in answer.reason
    assert "do not fill" in view_as((4, 5), (5, 1), 8, (3, -1)).reason


def test_memory_formats() -> None:
    images = torch.empty(2, 3, 4, 5, device="meta")
    volumes = torch.empty(2, 3, 4, 5, 6, device="meta").to(memory_format=torch.channels_last_3d)
    seen = {
        memory_format(tuple(x.shape), x.stride())
        for x in (images, images.to(memory_format=torch.channels_last), volumes, images.mT, images[..., ::2])
    }
    assert seen == {"contiguous", "channels last", "channels last 3d", "permuted", "strided"}
