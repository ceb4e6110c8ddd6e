"""A small `lightning` run: automatic optimisation, early stopping, a checkpoint loaded back, then a test."""

import logging

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(lightning.LightningModule):
    """Fits a noisy sine and prints every epoch's losses."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(1, width),
            nn.BatchNorm1d(width),
            nn.ReLU(inplace=True),
            nn.Dropout(0.1),
            nn.Linear(width, 1),
        )

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: list[torch.Tensor], index: int) -> None:
        x, y = batch
        self.log("valid_loss", nn.functional.mse_loss(self.net(x), y))

    test_step = validation_step

    def on_train_epoch_end(self) -> None:
        losses = {
            name: f"{value.item():.9f}" for name, value in sorted(self.trainer.callback_metrics.items())
        }
        print(f"epoch {self.current_epoch} {losses}")

    def configure_optimizers(self) -> dict[str, object]:
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3)}


def sine(rows: int) -> TensorDataset:
    x = torch.rand(rows, 1) * 6 - 3
    return TensorDataset(x, torch.sin(x) + 0.1 * torch.randn_like(x))


def main() -> None:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    lightning.seed_everything(0, verbose=False)
    torch.set_num_threads(1)
    checkpoint = ModelCheckpoint(dirpath="out", monitor="valid_loss", enable_version_counter=False)
    trainer = lightning.Trainer(
        max_epochs=6,
        accelerator="cpu",
        devices=1,
        gradient_clip_val=1.0,
        accumulate_grad_batches=2,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[checkpoint, EarlyStopping("valid_loss", patience=2)],
    )
    valid = DataLoader(sine(64), batch_size=16)
    trainer.fit(Regressor(), DataLoader(sine(128), batch_size=16, shuffle=True), valid)
    best = Regressor.load_from_checkpoint(checkpoint.best_model_path)
    tested = trainer.test(best, valid, verbose=False)
    print(f"best {tested[0]['valid_loss']:.9f}")


if __name__ == "__main__":
    main()
