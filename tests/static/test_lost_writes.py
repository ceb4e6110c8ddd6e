"""Writes into copies that nobody keeps."""

from __future__ import annotations

import pytest

from static.checking import expected, found

SNIPPETS = {
    "mask_then_columns": """
boxes = torch.rand(5, 4)
keep = boxes[:, 2] > 0.5
boxes[keep][:, :2] += 1  # finds TS106
""",
    "index_tensor_filled": """
x = torch.rand(5)
x[torch.tensor([0, 1])].fill_(0)  # finds TS106
""",
    "argsort_of_unknown_kind": """
def drop(scores):
    order = scores.argsort(descending=True)
    scores[order[3:]].zero_()
    return scores
""",
    "random_rows": """
table = torch.zeros(10, 3)
idx = torch.randperm(10)[:4]
table[idx][:, 1] = 5.0  # finds TS106
table[idx, 1] = 5.0
""",
    "numpy_mask_then_column": """
x = np.zeros((4, 3))
x[x[:, 0] > 0][:, 1] = 3  # finds TS106
x[1:3][0] = 3
""",
    "embedding_rows_normalised": """
emb = nn.Embedding(10, 4)
ids = torch.tensor([1, 2])
emb.weight.data[ids].normal_()  # finds TS106
emb.weight.data[1:3].normal_()
""",
    "lists_and_dicts_are_no_copies": """
d = {"a": torch.zeros(3)}
for k in d:
    d[k][0] = 1
rows = [torch.zeros(2), torch.zeros(2)]
for i in range(2):
    rows[i][0] = 1
""",
    "clamp_of_masked": """
x = torch.rand(4, 4)
m = x > 0.5
x[m].clamp_(max=0.9)  # finds TS106
x.masked_select(m).zero_()  # finds TS106
y = x[m].clamp_(max=0.9)
""",
    "rows_and_columns_by_index": """
probs = torch.rand(8, 5)
top = probs.topk(2, dim=1)[1]
rows = torch.arange(8).unsqueeze(1)
probs[rows, top].zero_()  # finds TS106
""",
    "array_by_sorted_index": """
boxes = np.random.rand(5, 4)
idx = np.argsort(boxes[:, 0])
boxes[idx][0] = 0  # finds TS106
boxes[idx[0]][0] = 0
""",
    "masked_slice_copied_into": """
h = torch.zeros(3, 4)
mask = torch.tensor([True, False, True])
h[mask][:, 1:3].copy_(torch.ones(2, 2))  # finds TS106
h[0][1] = 2
h[:2][0] = 2
h[None][0] = 1
""",
    "pruned_rows": """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 4))
    def prune(self, keep):
        order = self.weight.abs().sum(1).argsort()
        self.weight.data[order[:2]].zero_()  # finds TS106
        self.weight.data[order[:2]] = 0
""",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    assert found(SNIPPETS[name]) == expected(SNIPPETS[name])
