"""Workers that augment in place, stay for several epochs, stream, collate; a pool that prepares data."""

import hashlib
import multiprocessing

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Images(Dataset):
    """Pictures that a worker keeps and changes copies of."""

    def __init__(self, pictures: torch.Tensor) -> None:
        self.pictures = pictures

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        picture = self.pictures[index].clone()
        generator = torch.Generator().manual_seed(index)
        if torch.rand((), generator=generator) < 0.5:
            picture = picture.flip(-1)
        picture[:, :2, :2] = 0
        picture.sub_(picture.mean()).div_(picture.std().clamp_(min=1e-3))
        picture += torch.randn(picture.shape, generator=generator).mul_(0.01)
        return {"picture": picture, "label": torch.tensor(index % 2)}


class Stream(IterableDataset):
    """Each worker gives every second number."""

    def __iter__(self):
        worker = get_worker_info()
        buffer = torch.zeros(4)
        for number in range(worker.id, 12, worker.num_workers):
            buffer.mul_(0.5).add_(number)
            yield buffer.clone()


def prepare(seed: int) -> torch.Tensor:
    picture = torch.rand(1, 6, 6, generator=torch.Generator().manual_seed(seed))
    picture[picture < 0.1] = 0
    return picture.clamp_(0.05, 0.95)


def collate(items: list[dict[str, torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    pictures = torch.stack([item["picture"] for item in items])
    return pictures.contiguous(), torch.stack([item["label"] for item in items])


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        images = Images(torch.stack(pool.map(prepare, range(24))))
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Dropout(0.1), nn.Linear(64, 2)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(
        images, 8, shuffle=True, num_workers=2, collate_fn=collate, persistent_workers=True, drop_last=True
    )
    for _ in range(3):
        for pictures, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(pictures), labels)
            loss.backward()
            optimizer.step()
        print(f"loss {loss.item():.9f}")
    print(sorted(item.sum().item() for item in DataLoader(Stream(), batch_size=None, num_workers=2)))
    spawned = DataLoader(images, 12, num_workers=1, collate_fn=collate, multiprocessing_context="spawn")
    print([f"{pictures.sum().item():.6f}" for pictures, _ in spawned])
    weights = b"".join(value.detach().numpy().tobytes() for value in model.parameters())
    print(hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
