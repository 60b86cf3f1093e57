"""Twenty steps of Trainer.fit on 2 and 3 processes against Python's DistributedDataParallel.

From the same weights, on the same batches, batch k on rank k mod W: by SGD with momentum, Adam and AdamW, with and
without accumulation. The cases:
  even        each step has W * accumulate full batches, so Python's plain mean over ranks is that over samples
  short       the last batch is short and the last step of an epoch may have fewer batches: in Python the user weighs the
              losses by their samples
  batch_norm  as even, with BatchNorm in place of GroupNorm: buffers are those of rank 0
"""
import os
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 20
BATCH_SIZE = 4
TOLERANCE = 1e-5
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
}
ACCUMULATE = (1, 2)
CASES = ("even", "short", "batch_norm")
RANKS = (2, 3)


class Net(nn.Module):
    def __init__(self, batch_norm):
        super().__init__()
        self.conv = nn.Conv2d(2, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8) if batch_norm else nn.GroupNorm(2, 8)
        self.hidden = nn.Linear(8 * 6 * 6, 16)
        self.layer_norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        hidden = self.hidden(torch.relu(self.norm(self.conv(x))).flatten(1))
        return self.head(torch.tanh(self.layer_norm(hidden)))


def samples_of(case, ranks):
    # Five rounds of batches do not fill the last window of two.
    return 5 * ranks * BATCH_SIZE - 1 if case == "short" else 4 * ranks * BATCH_SIZE


def write_inputs(case, ranks):
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(samples_of(case, ranks), 2, 6, 6, generator=generator)
    y = (x.amax((1, 2, 3)) + x[:, 0].mean((1, 2)))[:, None]
    save_file({"x": x, "y": y}, f"{case}-{ranks}.safetensors")
    torch.manual_seed(3)
    save_file(Net(case == "batch_norm").state_dict(), f"{case}-weights.safetensors")


def train(case, optimizer, accumulate, weigh):
    """The state_dict of this rank after STEPS steps."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    data = load_file(f"{case}-{ranks}.safetensors")
    batches = list(zip(data["x"].split(BATCH_SIZE), data["y"].split(BATCH_SIZE)))
    net = Net(case == "batch_norm")
    net.load_state_dict(load_file(f"{case}-weights.safetensors"))
    ddp = DistributedDataParallel(net)
    optimizer = OPTIMIZERS[optimizer](ddp.parameters())
    steps = 0
    while steps < STEPS:
        for first in range(0, len(batches), ranks * accumulate):
            window = batches[first:first + ranks * accumulate]
            own = window[rank::ranks]
            for i, (x, y) in enumerate(own):
                ddp.require_backward_grad_sync = i + 1 == len(own)  # what no_sync() does
                loss = nn.functional.mse_loss(ddp(x), y)
                if weigh:
                    loss = loss * (len(y) * ranks / sum(len(y) for _, y in window))
                else:
                    loss = loss / len(own)
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
            if steps == STEPS:
                break
    return net.state_dict()


def python_rank(rank, ranks, meeting):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    for case in CASES:
        for optimizer in OPTIMIZERS:
            for accumulate in ACCUMULATE:
                state = train(case, optimizer, accumulate, weigh=case == "short")
                if rank == 0:
                    save_file(state, f"python-{case}-{ranks}-{optimizer}-{accumulate}.safetensors")
    unweighed = train("short", "sgd", 1, weigh=False)
    if rank == 0:
        save_file(unweighed, f"unweighed-{ranks}.safetensors")
    dist.destroy_process_group()


def difference(left, right):
    assert left.keys() == right.keys(), left.keys() ^ right.keys()
    worst = 0.0
    for name in left:
        assert left[name].dtype == right[name].dtype and left[name].shape == right[name].shape, name
        worst = max(worst, (left[name].double() - right[name].double()).abs().max().item())
    return worst


def train_by_muster(case, ranks):
    program = os.path.join(os.environ["MUSTER_BIN"], "ddp_fit_program")
    run = subprocess.run(
        [program, "fit", "--devices", str(ranks), "--ckpt_path", f"{case}-weights.safetensors", "--run_dir",
         f"{case}-{ranks}", "--trainer.max_steps", str(STEPS), "--trainer.logger", "false",
         "--trainer.enable_progress_bar", "false", "--model.batch_norm", str(case == "batch_norm").lower(),
         "--data.samples", f"{case}-{ranks}.safetensors", "--data.batch_size", str(BATCH_SIZE)],
        capture_output=True, text=True, timeout=120)
    if run.returncode != 0:
        sys.exit(f"{case} on {ranks}: exit {run.returncode}: {run.stderr}")


def main():
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    worst = {}
    for ranks in RANKS:
        for case in CASES:
            write_inputs(case, ranks)
        # Forked, since importing torch takes longer than all of this.
        mp.start_processes(python_rank, (ranks, os.path.abspath(f"meeting-{ranks}")), ranks, start_method="fork")
        for case in CASES:
            train_by_muster(case, ranks)
            start = load_file(f"{case}-weights.safetensors")
            for optimizer in OPTIMIZERS:
                for accumulate in ACCUMULATE:
                    name = f"{case}-{ranks}-{optimizer}-{accumulate}"
                    ours = load_file(f"{case}-{ranks}/{optimizer}-{accumulate}/checkpoints/last.ckpt/model.safetensors")
                    theirs = load_file(f"python-{name}.safetensors")
                    moved = (theirs["hidden.weight"] - start["hidden.weight"]).abs().max().item()
                    assert moved > 0.01, f"{name}: it has learnt nothing"
                    found = difference(ours, theirs)
                    worst[case] = max(worst.get(case, 0.0), found)
                    assert found <= TOLERANCE, f"{name}: {found}"
        # Without the weights the last step would be another one: the case shows something.
        weighed = load_file(f"python-short-{ranks}-sgd-1.safetensors")
        assert difference(weighed, load_file(f"unweighed-{ranks}.safetensors")) > 10 * TOLERANCE
    print("largest differences to Python's DDP:", ", ".join(f"{case} {value:.2g}" for case, value in worst.items()))


if __name__ == "__main__":
    main()
