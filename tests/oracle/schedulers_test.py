"""The rates and momenta of every scheduler over 50 steps against torch.optim.lr_scheduler."""
import json
import os
import subprocess
import warnings

import torch
from torch.optim import lr_scheduler as lr

warnings.simplefilter("ignore")  # the optimizer never steps here

TOLERANCE = 1e-12


def warm_up(o):
    return lr.LinearLR(o, start_factor=0.1, total_iters=6)


def cosine(o):
    return lr.CosineAnnealingLR(o, 40, 1e-4)


def decay(o):
    return lr.ExponentialLR(o, 0.97)


def steps(o):
    return lr.StepLR(o, 5, 0.5)


def restarts(o):
    return lr.CosineAnnealingWarmRestarts(o, 4, 2)


def plateau(**options):
    return lambda o: lr.ReduceLROnPlateau(o, **options)


def one_cycle(**options):
    return lambda o: lr.OneCycleLR(o, **options)


CASES = {
    "step": lambda o: lr.StepLR(o, 7, 0.3),
    "step every": lambda o: lr.StepLR(o, 1, 0.9),
    "multi_step": lambda o: lr.MultiStepLR(o, [30, 4, 4, 17], 0.4),
    "multi_step at 0": lambda o: lr.MultiStepLR(o, [0, 9], 0.5),
    "exponential": lambda o: lr.ExponentialLR(o, 0.93),
    "polynomial": lambda o: lr.PolynomialLR(o, 40, 0.9),
    "polynomial default": lr.PolynomialLR,
    "linear": lambda o: lr.LinearLR(o, 0.01, 0.7, 23),
    "linear default": lr.LinearLR,
    "linear to 0": lambda o: lr.LinearLR(o, 1.0, 0.0, 10),
    "constant": lambda o: lr.ConstantLR(o, 0.25, 9),
    "constant default": lr.ConstantLR,
    "cosine": lambda o: lr.CosineAnnealingLR(o, 50, 1e-3),
    "cosine twice": lambda o: lr.CosineAnnealingLR(o, 11, 0.01),
    "cosine of 1": lambda o: lr.CosineAnnealingLR(o, 1),
    "restarts": lambda o: lr.CosineAnnealingWarmRestarts(o, 8, eta_min=1e-4),
    "restarts growing": lambda o: lr.CosineAnnealingWarmRestarts(o, 3, 2),
    "lambda": lambda o: lr.LambdaLR(o, lambda step: 0.95**step),
    "lambda each": lambda o: lr.LambdaLR(o, [lambda s: 1 / (s + 1), lambda s: 2.0, lambda s: s // 10]),
    "one_cycle": one_cycle(max_lr=0.4, total_steps=50),
    "one_cycle adam": one_cycle(max_lr=0.4, total_steps=50),
    "one_cycle each": one_cycle(max_lr=[0.4, 0.1, 1.0], total_steps=60, pct_start=0.45, anneal_strategy="linear",
                                base_momentum=[0.8, 0.7, 0.6], max_momentum=[0.9, 0.95, 0.99], div_factor=10.0,
                                final_div_factor=100.0),
    "one_cycle three": one_cycle(max_lr=0.4, total_steps=50, three_phase=True),
    "one_cycle three linear": one_cycle(max_lr=0.4, total_steps=55, pct_start=0.4, anneal_strategy="linear",
                                        three_phase=True),
    "one_cycle down": one_cycle(max_lr=0.4, total_steps=50, pct_start=0.0),
    "one_cycle still": one_cycle(max_lr=0.4, total_steps=50, cycle_momentum=False),
    "plateau": lr.ReduceLROnPlateau,
    "plateau quick": plateau(factor=0.5, patience=2, cooldown=3, min_lr=0.004),
    "plateau abs": plateau(factor=0.7, patience=1, threshold=0.01, threshold_mode="abs", min_lr=[0.01, 0.0, 0.2],
                           eps=1e-3),
    "plateau max": plateau(mode="max", factor=0.9, patience=0),
    "plateau max abs": plateau(mode="max", factor=0.8, patience=3, threshold=0.002, threshold_mode="abs"),
    "sequence": lambda o: lr.SequentialLR(o, [warm_up(o), cosine(o)], [6]),
    "sequence of 4": lambda o: lr.SequentialLR(o, [lr.ConstantLR(o), decay(o), restarts(o), steps(o)], [3, 12, 30]),
    "sequence from 0": lambda o: lr.SequentialLR(o, [warm_up(o), steps(o), decay(o)], [0, 20]),
    "sequence of one": lambda o: lr.SequentialLR(o, [warm_up(o)], []),
    "sequence to one_cycle": lambda o: lr.SequentialLR(
        o, [warm_up(o), lr.OneCycleLR(o, max_lr=0.4, total_steps=44)], [8]),
    "sequence from one_cycle": lambda o: lr.SequentialLR(
        o, [lr.OneCycleLR(o, max_lr=0.4, total_steps=20), cosine(o)], [20]),
    "chain": lambda o: lr.ChainedScheduler([warm_up(o), decay(o), steps(o)]),
    "chain of cosine": lambda o: lr.ChainedScheduler([warm_up(o), cosine(o)]),
    "chain of sequence": lambda o: lr.ChainedScheduler(
        [decay(o), lr.SequentialLR(o, [steps(o), cosine(o)], [10])], o),
}
ADAM = {"one_cycle adam", "one_cycle three linear", "sequence from one_cycle"}


def metric(step):
    return 1.0 / step if step < 12 else 0.0625 + 0.001 * ((step * 7) % 5)


def expected(name):
    groups = [{"params": [torch.zeros(1, requires_grad=True)], "lr": rate} for rate in (0.1, 0.02, 0.5)]
    optimizer = torch.optim.Adam(groups) if name in ADAM else torch.optim.SGD(groups, lr=0.3, momentum=0.9)
    scheduler = CASES[name](optimizer)
    rates, momenta = [], []
    for step in range(51):
        if step > 0:
            scheduler.step(*([metric(step)] if name.startswith("plateau") else []))
        rates.append([group["lr"] for group in optimizer.param_groups])
        momenta.append([group["betas"][0] if name in ADAM else group["momentum"] for group in optimizer.param_groups])
    return {"rates": rates, "momenta": momenta}


program = os.path.join(os.environ["MUSTER_BIN"], "schedulers_program")
found = json.loads(subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout)
assert list(found) == list(CASES), set(found) ^ set(CASES)

worst = 0.0
for name, values in found.items():
    reference = expected(name)
    assert len({tuple(row) for row in reference["rates"]}) > 1, f"{name}: the rates never change; the case shows nothing"
    for what in ("rates", "momenta"):
        assert len(values[what]) == 51
        for step, (ours, theirs) in enumerate(zip(values[what], reference[what])):
            assert len(ours) == 3
            for group, (left, right) in enumerate(zip(ours, theirs)):
                worst = max(worst, abs(left - right))
                assert abs(left - right) <= TOLERANCE, (name, what, step, group, left, right)
print(f"{len(found)} schedulers, largest difference {worst}")
