"""A tiny ViT learns which quarter of an image is bright, in a loop with warm-up, EMA weights and dropout."""

import copy

import torch
from transformers import ViTConfig, ViTForImageClassification, set_seed


def images(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.randint(4, (rows,))
    pixels = 0.1 * torch.randn(rows, 3, 16, 16)
    for image, label in zip(pixels, labels.tolist(), strict=True):
        top, left = 8 * (label // 2), 8 * (label % 2)
        image[:, top : top + 8, left : left + 8] += 1
    return pixels, labels


@torch.no_grad()
def average(kept: torch.nn.Module, live: torch.nn.Module, decay: float = 0.9) -> None:
    for mean, now in zip(kept.parameters(), live.parameters(), strict=True):
        mean.mul_(decay).add_(now, alpha=1 - decay)


def main() -> None:
    set_seed(0)
    torch.set_num_threads(1)
    config = ViTConfig(
        image_size=16,
        patch_size=4,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=4,
        hidden_dropout_prob=0.1,
    )
    model = ViTForImageClassification(config)
    kept = copy.deepcopy(model).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=10)
    model.train()
    for step in range(20):
        pixels, labels = images(16)
        output = model(pixel_values=pixels, labels=labels)
        optimizer.zero_grad(set_to_none=False)
        output.loss.backward()
        optimizer.step()
        warm_up.step()
        average(kept, model)
        print(f"step {step} loss {output.loss.item():.9f}")
    pixels, labels = images(64)
    with torch.inference_mode():
        right = (kept(pixel_values=pixels).logits.argmax(-1) == labels).float().mean()
    print(f"accuracy of the averaged weights {right.item():.4f}")


if __name__ == "__main__":
    main()
