"""A tiny GPT-2 learns to repeat a pattern, in a loop with clipping and a schedule, and then generates."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, set_seed


def patterns(rows: int, length: int = 16) -> torch.Tensor:
    period = torch.randint(2, 5, (rows, 1))
    return (torch.arange(length) % period) + 5 * period


def main() -> None:
    set_seed(0)
    torch.set_num_threads(1)
    config = GPT2Config(
        vocab_size=32, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    for step in range(20):
        tokens = patterns(8)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f}")
    model.eval()
    with torch.no_grad():
        prompt = patterns(2)[:, :6]
        print(
            model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=6, do_sample=False)
        )
        print(f"weights {sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
