"""Autocast, gradient scaler and clipping against torch.autocast, torch.amp.GradScaler and torch.nn.utils, to the bit."""
import math
import os
import subprocess

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

torch.manual_seed(3)
torch.set_num_threads(1)

WEIGHTS = ["w1", "b1", "w2", "b2"]
BAD = {2: math.inf, 5: math.nan, 6: -math.inf, 11: math.inf}  # a number in the gradients of a step
STEPS = 14
TYPES = [torch.float32, torch.float64, torch.bfloat16]


def network_inputs():
    return {"x": torch.randn(33, 40), "w1": torch.randn(24, 40), "b1": torch.randn(24), "w2": torch.randn(7, 24),
            "b2": torch.randn(7)}


def step_inputs():
    inputs = {}
    for step in range(STEPS):
        inputs[f"steps.{step}.0"] = torch.randn(5, 3)
        inputs[f"steps.{step}.1"] = torch.randn(4, dtype=torch.float64)
        if step in BAD:
            inputs[f"steps.{step}.{step % 2}"].view(-1)[step % 4] = BAD[step]
    return inputs


def clip_inputs():
    inputs = {}
    for number, dtype in enumerate(TYPES):
        for place, shape in enumerate([(31, 17), (), (129,), (2, 3, 5, 4)]):
            inputs[f"clip.{number}.{place}"] = torch.randn(shape).to(dtype)
    return inputs


def network(inputs, name, dtype):
    weights = [inputs[key].clone().requires_grad_() for key in WEIGHTS]
    with torch.autocast("cpu", dtype or torch.bfloat16, enabled=dtype is not None):
        hidden = F.relu(F.linear(inputs["x"], weights[0], weights[1]))
        loss = F.linear(hidden, weights[2], weights[3]).square().mean()
    scaler = torch.amp.GradScaler("cpu", enabled=dtype == torch.float16)
    scaler.scale(loss).backward()
    return {f"{name}.loss": loss.detach()} | {f"{name}.{i}": weight.grad for i, weight in enumerate(weights)}


def with_gradient(gradient):
    parameter = torch.zeros_like(gradient).requires_grad_()
    parameter.grad = gradient.clone()
    return parameter


def number(value):
    return torch.tensor(float(value), dtype=torch.float64)


def scaler_steps(inputs):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_factor=3.0, backoff_factor=0.3, growth_interval=2)
    scaler.scale(torch.zeros(()))
    results = {}
    for step in range(STEPS):
        parameters = [with_gradient(inputs[f"steps.{step}.{i}"]) for i in range(2)]
        optimizer = torch.optim.SGD(parameters, lr=1.0)
        scaler.unscale_(optimizer)
        results |= {f"unscaled.{step}.{i}": parameter.grad.clone() for i, parameter in enumerate(parameters)}
        scaler.step(optimizer)
        scaler.update()
        stepped = any(parameter.detach().any() for parameter in parameters)
        results |= {f"found.{step}": number(not stepped), f"factor.{step}": number(scaler.get_scale())}
    return results


def clipped(inputs):
    results = {}
    for kind in range(len(TYPES)):
        for bound in (0.25, 1.0, 1e4):
            name = f"{kind}.{bound:g}"
            gradients = [inputs[f"clip.{kind}.{i}"] for i in range(4)]
            by_norm, by_value = ([with_gradient(gradient) for gradient in gradients] for _ in range(2))
            results[f"norm.{name}"] = number(torch.nn.utils.clip_grad_norm_(by_norm, bound))
            torch.nn.utils.clip_grad_value_(by_value, bound)
            for i in range(4):
                results |= {f"by_norm.{name}.{i}": by_norm[i].grad, f"by_value.{name}.{i}": by_value[i].grad}
    return results


def bits(tensor):
    return tensor.dtype, tensor.shape, tensor.contiguous().view(-1).view(torch.uint8).tolist()


inputs = network_inputs() | step_inputs() | clip_inputs()
expected = network(inputs, "32", None) | network(inputs, "bf16", torch.bfloat16) | network(inputs, "16", torch.float16)
expected |= scaler_steps(inputs) | clipped(inputs)
save_file(inputs, "in.safetensors")
subprocess.run([os.path.join(os.environ["MUSTER_BIN"], "precision_program"), "in.safetensors", "out.safetensors"], check=True)
found = load_file("out.safetensors")

assert set(found) == set(expected), set(found) ^ set(expected)
for name, tensor in expected.items():
    assert bits(found[name]) == bits(tensor), (name, (found[name].double() - tensor.double()).abs().max())

# The cases show something: the types differ, the factor moves both ways, and some gradients were clipped.
assert len({expected[f"{name}.loss"].item() for name in ("32", "bf16", "16")}) == 3
factors = [expected[f"factor.{step}"].item() for step in range(STEPS)]
assert {step for step in range(STEPS) if expected[f"found.{step}"]} == set(BAD) and len(set(factors)) > 5, factors
assert any(not torch.equal(expected[f"by_norm.0.1.{i}"], inputs[f"clip.0.{i}"]) for i in range(4))
print(f"{len(expected)} tensors are the same to the bit; factors {factors}")
