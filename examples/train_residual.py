"""A residual network learns to tell two spirals apart; its skip connections add in place to save memory."""

import math

import torch
from torch import nn

WIDTH = 32


class ResidualBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.relu(self.linear(self.norm(x)))
        out += x
        return out


def two_spirals(points: int) -> tuple[torch.Tensor, torch.Tensor]:
    label = torch.arange(points) % 2
    turn = torch.rand(points).sqrt() * 2 * math.pi
    angle = turn + label * math.pi
    position = torch.stack([turn * angle.cos(), turn * angle.sin()], dim=1)
    return position + 0.1 * torch.randn_like(position), label


def main() -> None:
    torch.manual_seed(0)
    inputs, labels = two_spirals(512)
    model = nn.Sequential(
        nn.Linear(2, WIDTH),
        ResidualBlock(WIDTH),
        ResidualBlock(WIDTH),
        nn.Linear(WIDTH, 2),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(200):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        if epoch % 50 == 0:
            print(f"epoch {epoch:3}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
