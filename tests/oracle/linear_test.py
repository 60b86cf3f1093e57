"""--ckpt_path takes weights that Python's safetensors wrote, and refuses wrong ones; torchrun and misuse of a collective."""
import json
import os
import re
import subprocess
import sys
import time

import torch
from safetensors.torch import save_file

PROGRAM = os.path.join(os.environ["MUSTER_BIN"], "linear_program")


def run(*args, launcher=()):
    start = time.monotonic()
    p = subprocess.run([*launcher, PROGRAM, *args], capture_output=True, text=True, timeout=120)
    return p, time.monotonic() - start


def expect(ok, text):
    if not ok:
        sys.exit("FAIL " + text)


torch.manual_seed(1)
linear = torch.nn.Linear(3, 2)
state = {"weight": linear.weight.detach(), "bias": linear.bias.detach(), "scale": torch.full((1,), 2.0)}
os.makedirs("model.ckpt")
save_file(state, "model.ckpt/model.safetensors")
save_file(state, "single.safetensors")
with torch.no_grad():
    y = (linear(torch.stack([torch.full((3,), float(i)) for i in range(3)])) * 2).double().mean(0).tolist()

for path in ("model.ckpt", "single.safetensors"):
    for devices in "12":
        p, _ = run("validate", "--ckpt_path", path, "--run_dir", "run", "--devices", devices)
        expect(p.returncode == 0, p.stderr)
        metrics = json.load(open("run/results.json"))["validate"]["metrics"]
        for name, want in (("y0", y[0]), ("y1", y[1])):
            expect(abs(metrics[name] - want) < 1e-6, f"{path} at {devices}: {name} is {metrics[name]}, Python has {want}")

wrong = {"weights": state["weight"], "bias": state["bias"], "scale": state["scale"]}
save_file(wrong, "wrong.safetensors")
save_file({**state, "bias": torch.zeros(5)}, "shape.safetensors")
open("torn.safetensors", "wb").write(open("single.safetensors", "rb").read()[:-3])
for path, code, part in (("nowhere.ckpt", 2, "nowhere.ckpt"), ("wrong.safetensors", 65, "weight"),
                         ("shape.safetensors", 65, "bias"), ("torn.safetensors", 65, "torn.safetensors")):
    p, _ = run("validate", "--ckpt_path", path, "--run_dir", "run")
    expect(p.returncode == code and part in p.stderr, f"{path}: exit {p.returncode}: {p.stderr}")

# Gathering in a batch hook with 3 batches on 2 ranks is right; on rank 0 alone it is an error on every rank.
p, _ = run("validate", "--run_dir", "run", "--devices", "2", "--model.gather", "all")
expect(p.returncode == 0, p.stderr)
p, seconds = run("validate", "--run_dir", "run", "--devices", "2", "--model.gather", "rank_zero")
expect(p.returncode == 70, f"exit {p.returncode}: {p.stderr}")
expect(re.search(r"rank 0: .*round 0.*linear_program\.cpp:\d+", p.stderr), p.stderr)
expect(re.search(r"rank 1: .*\.(cpp|h):\d+", p.stderr), p.stderr)
expect(seconds < 10, f"took {seconds:.1f} s")
expect(sorted(os.listdir("run/errors")) == ["rank-0.json", "rank-1.json"], str(os.listdir("run/errors")))

# A rank that throws ends the job with its own message.
p, seconds = run("validate", "--run_dir", "run", "--devices", "2", "--model.fail", "true")
expect(p.returncode == 1 and "does not like row 2" in p.stderr, f"exit {p.returncode}: {p.stderr}")
expect(p.stderr.startswith("rank 0 (pid") or "\nrank 0 (pid" in p.stderr, p.stderr)
expect(seconds < 10, f"took {seconds:.1f} s")

# torchrun's variables work as the own launcher's do.
# A machine may not know the name localhost, which torchrun takes by default.
rendezvous = ("--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1")
torchrun = (sys.executable, "-m", "torch.distributed.run", *rendezvous, "--nproc-per-node=2", "--no-python")
p, _ = run("validate", "--run_dir", "under-torchrun", launcher=torchrun)
expect(p.returncode == 0, p.stderr)
muster = (os.path.join(os.environ["MUSTER_BIN"], "muster"), "launch", "-n", "3")
p, _ = run("validate", "--run_dir", "under-muster", launcher=muster)
expect(p.returncode == 0, p.stderr)
a, b = (open(f"under-{by}/results.json", "rb").read() for by in ("torchrun", "muster"))
expect(a == b, "torchrun and muster launch differ")
print("weights from Python, misuse and launchers: as they should be")
