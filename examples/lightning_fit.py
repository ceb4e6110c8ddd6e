"""A lightning fit that looks right: the gradients are wrong, and the callback says at which line.

python examples/lightning_fit.py
"""

import logging
import warnings

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

from tensafe.integrations.lightning import BestWeightsCallback, WatchingCallback

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.features, self.head = torch.nn.Linear(8, 32), torch.nn.Linear(32, 1)

    def forward(self, x):
        hidden = torch.tanh(self.features(x))
        hidden.data.mul_(0.9)
        return self.head(hidden)

    def training_step(self, batch, _):
        x, y = batch
        return torch.nn.functional.mse_loss(self(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", torch.nn.functional.mse_loss(self(x), y))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.4)


def main():
    torch.manual_seed(0)
    x = torch.randn(64, 8)
    data = TensorDataset(x, x.sum(1, keepdim=True).sin())
    watching, best = WatchingCallback(), BestWeightsCallback("val_loss")
    trainer = lightning.Trainer(
        max_epochs=10,
        callbacks=[watching, best],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Regression(), DataLoader(data, batch_size=16), DataLoader(data, batch_size=64))
    print(f"the weights of epoch {best.best.step} are back, with a loss of {best.best.score:.4f}")


if __name__ == "__main__":
    main()
