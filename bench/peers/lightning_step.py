#!/usr/bin/env python3
"""What a step costs in Lightning, on the work of examples/minimal, and in a plain loop of Python.

usage: lightning_step.py FOLDER [BLOCKS]    prints one JSON object: microseconds a step of each block

In blocks, as bench/fit_step.cpp does it (here of 500 steps): after each of Lightning's one of the plain loop, which reads a
loader of the same kind (samples of 64 numbers, batches of 8, shuffled, loaded in the loop's own process).
"""

import json
import sys
import time

import lightning
import torch

SAMPLES, BATCH, WARM_UP, STEPS = 4096, 8, 10, 500


class Samples(torch.utils.data.Dataset):
    def __init__(self):
        self.x = [torch.randn(64) for _ in range(SAMPLES)]

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return self.x[index]


def layers():
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = layers()

    def training_step(self, batch, batch_idx):
        loss = self.layers(batch).square().mean()
        self.log("train/loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class PlainLoop:
    def __init__(self, loader):
        self.loader = loader
        self.net = layers()
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)

    def block(self):
        """Microseconds a step."""
        for i, batch in enumerate(self.loader):
            if i == WARM_UP:
                begin = time.perf_counter()
            if i == WARM_UP + STEPS:
                break
            loss = self.net(batch).square().mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            if (i + 1) % 50 == 0:
                loss.item()
        return (time.perf_counter() - begin) * 1e6 / STEPS


class Blocks(lightning.Callback):
    def __init__(self, loop):
        self.loop = loop
        self.lightning, self.plain = [], []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if batch_idx + 1 == WARM_UP:
            self.begin = time.perf_counter()
        elif batch_idx + 1 == WARM_UP + STEPS:
            self.lightning.append((time.perf_counter() - self.begin) * 1e6 / STEPS)
            self.plain.append(self.loop.block())


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    torch.set_num_threads(1)
    lightning.seed_everything(0, verbose=False)
    samples = Samples()
    loaders = [torch.utils.data.DataLoader(samples, batch_size=BATCH, shuffle=True) for _ in range(2)]
    blocks = Blocks(PlainLoop(loaders[1]))
    trainer = lightning.Trainer(accelerator="cpu", devices=1, default_root_dir=sys.argv[1], callbacks=[blocks],
                                max_epochs=int(sys.argv[2]) if len(sys.argv) == 3 else 10)
    trainer.fit(Net(), loaders[0])
    print(json.dumps({"version": lightning.__version__, "lightning": blocks.lightning, "plain": blocks.plain}))


if __name__ == "__main__":
    main()
