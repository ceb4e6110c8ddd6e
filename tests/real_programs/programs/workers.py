"""Data loader workers that write in place, and a child process with a tensor in shared memory."""

import torch
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    """Numbers and their squares, made by in-place operations in the worker."""

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.full((2,), float(index)).div_(32)
        return x, x.clone().square_().sum(dim=0, keepdim=True)


def fill(shared: torch.Tensor) -> None:
    shared.fill_(7)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(2):
        for x, y in DataLoader(Squares(), batch_size=8, num_workers=2):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"loss {loss.item():.9f}")
    for method in ("fork", "spawn"):
        shared = torch.zeros(3).share_memory_()
        child = mp.get_context(method).Process(target=fill, args=(shared,))
        child.start()
        child.join()
        print(method, child.exitcode, shared)


if __name__ == "__main__":
    main()
