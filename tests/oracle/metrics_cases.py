"""What the tests of metrics share: cases for metrics_program, with what a real tool gives, and the comparison."""
import math
import os
import subprocess
import warnings

import torch
from safetensors.torch import save_file

warnings.simplefilter("ignore")
torch.set_num_threads(1)
torch.manual_seed(11)

CASES, TENSORS, EXPECTED = [], {}, {}
RANDOM = torch.Generator().manual_seed(5)


def pick(*choices):
    return choices[torch.randint(len(choices), (1,), generator=RANDOM).item()]


def add(metric, options, updates, expected, tolerance=1e-6):
    """A case: `updates` are dicts of tensors by role, `expected` maps names of values to numbers, None for none."""
    name = f"c{len(CASES)}"
    for number, update in enumerate(updates):
        for role, tensor in update.items():
            TENSORS[f"{name}.{number}.{role}"] = tensor.clone().contiguous()
    words = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in options.items()
             if value is not None]
    CASES.append(" ".join([name, metric, *words]))
    EXPECTED[name] = expected, tolerance


def value(number):
    """What TorchMetrics gave; NaN is its way to say that there is nothing."""
    number = float(number)
    return None if math.isnan(number) else number


def named(result):
    """A scalar is the value "."; an array has one value an element."""
    if result.ndim == 0:
        return {".": value(result)}
    return {str(i): value(number) for i, number in enumerate(result)}


def close(found, expected, tolerance):
    if found is None or expected is None:
        return found is None and expected is None
    return found == expected or abs(found - expected) <= tolerance * max(1.0, abs(expected))


def compare():
    """Runs all cases through metrics_program and says where it gives something else."""
    with open("cases.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(CASES) + "\n")
    save_file(TENSORS, "in.safetensors")
    program = os.path.join(os.environ["MUSTER_BIN"], "metrics_program")
    output = subprocess.run([program, "cases.txt", "in.safetensors"], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = {name: {} for name in EXPECTED}
    for line in output.splitlines():
        name, of, number = line.split()
        found[name][of] = None if number == "-" else float(number)
    wrong = 0
    for case in CASES:
        expected, tolerance = EXPECTED[case.split()[0]]
        values = found[case.split()[0]]
        if set(values) != set(expected) or not all(close(values[of], expected[of], tolerance) for of in expected):
            print(f"{case}\n  expected {expected}\n  found    {values}")
            wrong += 1
    assert wrong == 0, f"{wrong} of {len(CASES)} cases differ"
    print(f"{len(CASES)} cases are alike")
