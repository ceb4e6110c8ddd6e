"""What docs/integrations.md takes for granted: a module, a model, data, an accelerator."""

import logging
import tempfile
import warnings

import lightning
import torch
from accelerate import Accelerator

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")
torch.manual_seed(0)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
train_loader = val_loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
data = [{"x": one, "labels": label} for one, label in zip(x, y, strict=True)]
folder = tempfile.mkdtemp()
silent = {"report_to": "none", "disable_tqdm": False, "use_cpu": True, "logging_strategy": "no"}
quiet = dict.fromkeys(
    ("enable_checkpointing", "enable_progress_bar", "enable_model_summary", "logger"), False
)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels):
        out = self.layer(x)
        return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def training_step(self, batch, _):
        return self.net(*batch)["loss"]

    def validation_step(self, batch, _):
        self.log("val_loss", self.net(*batch)["loss"])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


module, model = Module(), Net()
accelerator = Accelerator(cpu=True)


def train_one_epoch():
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(x, y)["loss"]
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    return loss.detach()
