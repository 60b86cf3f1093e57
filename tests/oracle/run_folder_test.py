"""The whole run folder of the examples, at two ranks, as the real wandb and TensorBoard read it: every image of
results.json once, in order, with its caption and bytes; every metric with its last value."""
import glob
import hashlib
import json
import os
import struct
import subprocess
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

BIN, TESTS = os.environ["MUSTER_BIN"], os.environ["MUSTER_TESTS"]


def expect(ok, text):
    if not ok:
        sys.exit("FAIL " + text)


def float32(v):
    return struct.unpack("<f", struct.pack("<f", v))[0]


def matting(*arguments):
    subprocess.run([BIN + "/matting", *arguments, "--devices", "2", "--run_dir", "run"], check=True)


matting("fit", "--trainer.max_epochs", "1", "--trainer.limit_train_batches", "5", "--trainer.log_every_n_steps", "1",
        "--trainer.check_val_every_n_epoch", "1", "--trainer.limit_val_batches", "1")
matting("validate", "--ckpt_path", "last", "--trainer.limit_val_batches", "3")
matting("predict", "--ckpt_path", "last", "--trainer.limit_predict_batches", "5")
results = json.load(open("run/results.json"))
expect(results["validate"]["samples"] == 3 and results["predict"]["samples"] == 5, "samples")
expect(results["fit"]["steps"] == 3 and results["fit"]["epochs"] == 1, "steps of fit")
metrics = results["fit"]["metrics"] | results["validate"]["metrics"]
images = results["validate"]["images"] + results["predict"]["images"]
expect({i["step"] for i in images} == {3}, "images at the step of the weights")

history, media = [], {}
for run in sorted(glob.glob("run/wandb/offline-run-*"), key=os.path.getmtime):
    subprocess.run(["bash", TESTS + "/oracle/wandb_sync.sh", run, os.environ["WANDB"], "arrived.json"], check=True)
    for arrived in json.load(open("arrived.json"))["runs"].values():
        expect(arrived["exitcode"] == 0, f"exit code {arrived['exitcode']}")
        history += arrived["history"]
        media.update({name: file["sha256"] for name, file in arrived["files"].items()})

last = {k: v for row in history for k, v in row.items() if isinstance(v, (int, float))}
for name, value in metrics.items():
    expect(last.get(name) == value, f"{name} is {last.get(name)} in W&B, {value} in results.json")
shown = {}
for row in history:
    for key, v in row.items():
        if isinstance(v, dict) and v.get("_type") == "images/separated":
            shown.setdefault(key, []).extend(zip([media[f] for f in v["filenames"]], v["captions"]))
wanted = {}
for image in images:
    wanted.setdefault(image["key"], []).append((image["sha256"], image["caption"]))
for key, pairs in wanted.items():  # the validation within the training has shown some before
    expect(shown[key][-len(pairs):] == pairs, f"images {key} in W&B {shown[key]}, in results.json {pairs}")
expect(shown.keys() == wanted.keys(), "keys in W&B")

events = EventAccumulator("run/tensorboard", size_guidance={"tensors": 0, "scalars": 0})
events.Reload()
scalars, pictures = {}, []
for path in sorted(glob.glob("run/tensorboard/*tfevents*")):
    one = EventAccumulator(path, size_guidance={"tensors": 0, "scalars": 0})
    one.Reload()
    scalars.update({tag: one.Scalars(tag)[-1].value for tag in one.Tags()["scalars"]})
    for tag in one.Tags()["tensors"]:
        for event in one.Tensors(tag):
            pictures += [hashlib.sha256(png).hexdigest() for png in event.tensor_proto.string_val[2:]]
for name, value in metrics.items():
    expect(scalars.get(name) == float32(value), f"{name} is {scalars.get(name)} in TensorBoard")
expect(set(pictures) >= {i["sha256"] for i in images}, "images in TensorBoard")
train_loss = [row["train/loss"] for row in history if "train/loss" in row]
expect(len(train_loss) == 3, f"rows of train/loss: {train_loss}")
print(f"{len(pictures)} images and {len(scalars)} metrics agree over results.json, W&B and TensorBoard")
