"""A file of every type, and a Linear's state_dict, written by Python's safetensors, copied by Muster, read back."""
import hashlib
import json
import os
import subprocess

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

COPY = os.path.join(os.environ["MUSTER_BIN"], "copy_tensors")
TYPES = ["bool", "uint8", "int8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32", "float64",
         "int64", "uint64", "float8_e4m3fn", "float8_e5m2", "complex64"]


def bits(tensor):
    return tensor.dtype, tensor.shape, tensor.contiguous().flatten().view(torch.uint8).tolist()


def copied(tensors, metadata):
    save_file(tensors, "in.safetensors", metadata)
    subprocess.run([COPY, "in.safetensors", "out.safetensors"], check=True)
    back = load_file("out.safetensors")
    assert set(back) == set(tensors)
    for name, tensor in tensors.items():
        assert bits(back[name]) == bits(tensor), name
    with safe_open("out.safetensors", "pt") as file:
        assert file.metadata() == metadata
    return back


torch.manual_seed(1)
every = {}
for name in TYPES:
    values = (torch.rand(3, 5) * 2).to(getattr(torch, name))
    every |= {f"{name}.matrix": values, f"{name}.scalar": values[0, 0].clone(), f"{name}.empty": values[:0].clone()}
copied(every, {"format": "pt", "text": "<ü\"\n\u202e>"})

linear = torch.nn.Linear(4, 2)
twin = torch.nn.Linear(4, 2)
twin.load_state_dict(copied(linear.state_dict(), {"format": "pt"}))
x = torch.rand(3, 4)
assert torch.equal(linear(x), twin(x))

# A checkpoint folder: its model is such a file, and its manifest names all others.
subprocess.run([COPY, "in.safetensors", "out.safetensors", "checkpoints/a.ckpt"], check=True)
assert os.listdir("checkpoints") == ["a.ckpt"]
with open("checkpoints/a.ckpt/manifest.json", encoding="utf-8") as file:
    manifest = json.load(file)
assert (manifest["global_step"], manifest["epoch"]) == (12, 3) and set(manifest) == {"global_step", "epoch", "files"}
assert set(os.listdir("checkpoints/a.ckpt")) == set(manifest["files"]) | {"manifest.json"}
for name, about in manifest["files"].items():
    with open(f"checkpoints/a.ckpt/{name}", "rb") as file:
        content = file.read()
    assert about == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}, name
twin.load_state_dict(load_file("checkpoints/a.ckpt/model.safetensors"))
assert torch.equal(linear(x), twin(x))
with safe_open("checkpoints/a.ckpt/state", "pt") as file:
    assert file.metadata() == {".": "dict:2", "groups": "list:1", "groups.0": "dict:3", "groups.0.lr": "float:0.1",
                               "groups.0.exp_avg": "tensor", "groups.0.a%2Eb": "string:<ü>", "%": "null"}
    assert list(file.keys()) == ["groups.0.exp_avg"] and file.get_tensor("groups.0.exp_avg").shape == (2, 3)

# What one reader refuses, the other does too.
with open("in.safetensors", "rb") as file:
    whole = file.read()
for cut in [0, 7, 8, 40, len(whole) - 1]:
    with open("cut.safetensors", "wb") as file:
        file.write(whole[:cut])
    code = subprocess.run([COPY, "cut.safetensors", "none"], stderr=subprocess.PIPE, text=True)
    assert code.returncode == 65 and "cut.safetensors" in code.stderr, (cut, code)
    try:
        load_file("cut.safetensors")
    except SafetensorError:
        continue
    raise AssertionError(f"Python reads {cut} of {len(whole)} bytes")
