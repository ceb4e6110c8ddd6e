"""A transformers.Trainer on a model that looks right: a write that is lost, told by the callback at its line.

python examples/hf_trainer_fit.py
"""

import tempfile

import torch
from transformers import PrinterCallback, Trainer, TrainingArguments

from tensafe.integrations.transformers import BestWeightsCallback, WatchingCallback


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.head = torch.nn.Linear(8, 32), torch.nn.Linear(32, 3)

    def forward(self, x, labels):
        hidden = self.features(x)
        hidden[hidden < 0].mul_(0.01)
        logits = self.head(hidden)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def main():
    torch.manual_seed(0)
    x = torch.randn(64, 8)
    data = [{"x": row, "labels": row[:3].argmax()} for row in x]
    best = BestWeightsCallback("eval_loss")
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder,
            num_train_epochs=6,
            learning_rate=0.3,
            eval_strategy="epoch",
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(
            Classifier(), args, train_dataset=data, eval_dataset=data, callbacks=[WatchingCallback(), best]
        )
        trainer.remove_callback(PrinterCallback)  # prints every evaluation where there is no progress bar
        trainer.train()
    print(f"the weights of evaluation {best.best.step} are back, with a loss of {best.best.score:.4f}")


if __name__ == "__main__":
    main()
