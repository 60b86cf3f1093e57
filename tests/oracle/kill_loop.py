"""Kills `matting fit` at random moments, goes on each time, and compares with a training that was never killed: weights,
metrics.csv and results.json to the last byte; every run that was left is read by the real TensorBoard and the real wandb.

usage: kill_loop.py KILLS EPOCHS [SEED]
"""

import collections
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

MATTING = pathlib.Path(os.environ["MUSTER_BIN"], "matting")
MOST_SYNCS = 10
TOOLS = pathlib.Path(os.environ["WANDB"]).parent / "python"
READ_EVENTS = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
for folder in sys.argv[1:]:
    events = EventAccumulator(folder)
    events.Reload()
    steps = [event.step for event in events.Scalars("train/loss")]
    print(len(steps), len(set(steps)), max(steps))
"""


def command(run, epochs):
    return [str(MATTING), "fit", "--devices", "2", "--run_dir", run, "--data.crop", "32", "--data.repeats", "1",
            "--trainer.max_epochs", str(epochs), "--trainer.check_val_every_n_epoch", "4", "--trainer.limit_val_batches", "2",
            "--trainer.log_every_n_steps", "2", "--trainer.enable_progress_bar", "false"]


def resumed(run, epochs):
    """From the last checkpoint; before there is one, anew in an empty folder."""
    if os.path.lexists(pathlib.Path(run, "checkpoints/last.ckpt")):
        return command(run, epochs) + ["--ckpt_path", "last"]
    shutil.rmtree(run, ignore_errors=True)
    return command(run, epochs)


def last_checkpoint(run):
    link = pathlib.Path(run, "checkpoints/last.ckpt")
    return os.readlink(link) if os.path.islink(link) else None


def seconds_of_an_epoch(run):
    times = sorted(folder.stat().st_mtime for folder in pathlib.Path(run, "checkpoints").glob("epoch*.ckpt"))
    return statistics.median(after - before for before, after in zip(times, times[1:]))


def moment_of_kill(chance, process, after_a_checkpoint, longest, epoch_s):
    """Seconds from now: at random from the start on, `longest` at most, or within the epoch after the next checkpoint, since a
    busy machine would not get so far otherwise."""
    if not after_a_checkpoint:
        return chance.uniform(0.1, longest)
    before = last_checkpoint("killed")
    while process.poll() is None and last_checkpoint("killed") in (None, before):
        time.sleep(0.005)
    return chance.uniform(0, epoch_s)


def children_of(pid):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False).stdout
    return [int(child) for child in listed.split()]


def kill_somebody(chance, process):
    """The launcher, a rank, or all of them; which is said."""
    ranks = children_of(process.pid)
    whom = chance.choice(["launcher", "rank", "rank", "all"])
    targets = [process.pid] if whom == "launcher" or not ranks else ranks + [process.pid]
    if whom == "rank" and ranks:
        targets = [chance.choice(ranks)]
    for target in targets:
        try:
            os.kill(target, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return whom


def wait_for_the_folder(run):
    """Ranks whose launcher was killed end by themselves, within two seconds."""
    deadline = time.monotonic() + 10
    while subprocess.run(["pgrep", "-f", f"run_dir {run} "], capture_output=True, check=False).returncode == 0:
        assert time.monotonic() < deadline, f"processes of {run} are still alive"
        time.sleep(0.05)


def epochs_done(run):
    """By the name of the last checkpoint, epoch=E-step=S."""
    last = last_checkpoint(run)
    return int(last.split("-")[0].split("=")[1]) + 1 if last else 0


def same(one, other, name):
    left, right = (pathlib.Path(run, name).read_bytes() for run in (one, other))
    assert left == right, f"{name} of {other} differs from that of {one}"


def main():
    kills, epochs = int(sys.argv[1]), int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    chance = random.Random(seed)
    print(f"{kills} kills, {epochs} epochs, seed {seed}", flush=True)
    subprocess.run(command("whole", epochs), check=True, capture_output=True)
    epoch_s = seconds_of_an_epoch("whole")

    killed = collections.Counter()
    finished = False
    longest = 2.0
    while sum(killed.values()) < kills and not finished:
        with open("killed.log", "ab") as log:
            process = subprocess.Popen(resumed("killed", epochs), stdout=log, stderr=log)
            delay = moment_of_kill(chance, process, sum(killed.values()) % 2 == 0, longest, epoch_s)
            try:
                finished = process.wait(timeout=delay) == 0
            except subprocess.TimeoutExpired:
                killed[kill_somebody(chance, process)] += 1
                process.wait()
        wait_for_the_folder("killed")
        # However fast the machine is at the moment, the kills are spread over the training.
        ahead = epochs_done("killed") / epochs > 0.9 * sum(killed.values()) / kills
        longest = max(0.3, longest * 0.8) if ahead else min(4.0, longest * 1.1)
    print("killed:", dict(killed), flush=True)
    assert sum(killed.values()) == kills, f"the training ended after {sum(killed.values())} kills: give it more epochs"
    ended = subprocess.run(resumed("killed", epochs), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "going on from" in ended.stderr, "no checkpoint was gone on from"

    same("whole", "killed", "checkpoints/last.ckpt/model.safetensors")
    same("whole", "killed", "metrics.csv")
    same("whole", "killed", "results.json")
    assert not pathlib.Path("killed/spool").exists()

    read = subprocess.run([str(TOOLS), "-c", READ_EVENTS, "whole/tensorboard", "killed/tensorboard"], capture_output=True,
                          text=True, check=True).stdout.splitlines()
    assert read[0] == read[1], f"TensorBoard shows (values, steps, last step) {read[1]} instead of {read[0]}"

    runs = sorted(pathlib.Path("killed/wandb").glob("offline-run-*"))
    assert "resumed_from" in pathlib.Path("killed/wandb/latest-run/files/config.yaml").read_text(encoding="utf-8")
    sync = pathlib.Path(__file__).with_name("wandb_sync.sh")
    for run in chance.sample(runs, min(len(runs), MOST_SYNCS)):
        synced = subprocess.run(["bash", str(sync), str(run), os.environ["WANDB"]], capture_output=True, text=True, check=False)
        assert synced.returncode == 0, f"wandb sync of {run}: {synced.stdout}{synced.stderr}"
    print(f"{len(runs)} W&B runs, of which {min(len(runs), MOST_SYNCS)} were synced; TensorBoard: {read[1]}", flush=True)


if __name__ == "__main__":
    main()
