"""A tiny GPT-2 under `transformers.Trainer`: accumulation, evaluation, the best checkpoint loaded last."""

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Patterns(Dataset):
    """Rows that count with a period of two to four."""

    def __init__(self, rows: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        period = torch.randint(2, 5, (rows, 1), generator=generator)
        self.rows = (torch.arange(16) % period) + 5 * period

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def main() -> None:
    set_seed(0)
    torch.set_num_threads(1)
    config = GPT2Config(
        vocab_size=32, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=12,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        learning_rate=5e-3,
        eval_strategy="steps",
        save_strategy="steps",
        eval_steps=4,
        save_steps=4,
        logging_steps=4,
        load_best_model_at_end=True,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    )
    model = GPT2LMHeadModel(config)
    trainer = Trainer(model, arguments, train_dataset=Patterns(64, 1), eval_dataset=Patterns(16, 2))
    result = trainer.train()
    print(f"training loss {result.training_loss:.9f}")
    print(f"evaluation loss {trainer.evaluate()['eval_loss']:.9f}")
    print(f"weights {sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
