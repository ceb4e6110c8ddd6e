"""Training under CPU autocast with gradient scaling, clipping, an in-place layer and a kept best."""

import copy

import torch
from torch import nn


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(inplace=True), nn.LayerNorm(32), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=3)
    best, best_loss = copy.deepcopy(model.state_dict()), float("inf")
    for step in range(12):
        x = torch.randn(16, 8)
        target = x[:, :4].argmax(1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(x)
            loss = nn.functional.cross_entropy(logits.float(), target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        if loss.item() < best_loss:
            best, best_loss = copy.deepcopy(model.state_dict()), loss.item()
        print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f} scale {scaler.get_scale()}")
    model.load_state_dict(best)
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        print(f"best {best_loss:.9f} {model(torch.ones(1, 8)).float().sum().item():.9f}")


if __name__ == "__main__":
    main()
