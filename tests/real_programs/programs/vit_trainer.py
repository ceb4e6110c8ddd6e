"""A tiny ViT under `transformers.Trainer`: label smoothing, metrics in NumPy, a checkpoint resumed."""

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    EvalPrediction,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    set_seed,
)


class BrightQuarters(Dataset):
    """Images with one bright quarter; the label says which."""

    def __init__(self, rows: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(4, (rows,), generator=generator)
        self.pixels = 0.1 * torch.randn(rows, 3, 16, 16, generator=generator)
        for image, label in zip(self.pixels, self.labels.tolist(), strict=True):
            top, left = 8 * (label // 2), 8 * (label % 2)
            image[:, top : top + 8, left : left + 8] += 1

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"pixel_values": self.pixels[index], "labels": self.labels[index]}


def accuracy(prediction: EvalPrediction) -> dict[str, float]:
    chosen = np.argmax(prediction.predictions, axis=-1)
    return {"accuracy": float((chosen == prediction.label_ids).mean())}


def trainer_for(steps: int) -> Trainer:
    config = ViTConfig(
        image_size=16,
        patch_size=4,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=4,
    )
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=steps,
        per_device_train_batch_size=8,
        learning_rate=3e-3,
        label_smoothing_factor=0.1,
        save_steps=6,
        logging_steps=3,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    )
    return Trainer(
        ViTForImageClassification(config),
        arguments,
        train_dataset=BrightQuarters(64, 1),
        eval_dataset=BrightQuarters(32, 2),
        compute_metrics=accuracy,
    )


def main() -> None:
    set_seed(0)
    torch.set_num_threads(1)
    trainer_for(6).train()
    trainer = trainer_for(12)
    result = trainer.train(resume_from_checkpoint=True)
    print(f"training loss {result.training_loss:.9f}")
    metrics = trainer.evaluate()
    print(f"evaluation loss {metrics['eval_loss']:.9f} accuracy {metrics['eval_accuracy']:.4f}")


if __name__ == "__main__":
    main()
