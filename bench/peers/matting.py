#!/usr/bin/env python3
"""Matting errors of a portrait of 1920x1080 in plain numpy, scipy and scikit-image, beside Muster's on the same picture.

usage: matting.py BIN    BIN holds matting_portrait; exit 1 when a value differs or Muster is not 150 times as fast

Written as evaluation code usually is: one function a metric, called for each region with its mask, on one thread, and
scikit-image given integers to label (of booleans it labels twice as fast).
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.ndimage
import skimage.measure

LEAST_RATIO = 150
ROUNDS = 3


def sad(prediction, truth, mask):
    return np.abs(prediction - truth)[mask].sum() / 1000


def mse(prediction, truth, mask):
    return np.square(prediction - truth)[mask].mean()


def gradient_kernel(sigma=1.4, radius=4):
    x = np.arange(-radius, radius + 1)
    gauss = np.exp(-np.square(x) / (2 * sigma**2))
    kernel = np.outer(gauss, x * gauss)
    return kernel / np.sqrt(np.square(kernel).sum())


def magnitude(alpha):
    kernel = gradient_kernel()
    along_x = scipy.ndimage.convolve(alpha, kernel, mode="nearest")
    along_y = scipy.ndimage.convolve(alpha, kernel.T, mode="nearest")
    return np.sqrt(np.square(along_x) + np.square(along_y))


def grad(prediction, truth, mask):
    return np.square(magnitude(prediction) - magnitude(truth))[mask].sum() / 1000


def conn(prediction, truth, mask):
    level = np.full(prediction.shape, -1.0)
    for i in range(1, 11):
        both = ((prediction >= i / 10) & (truth >= i / 10)).astype(int)
        labels = skimage.measure.label(both, connectivity=1)
        sizes = np.bincount(labels.ravel())
        sizes[0] = 0
        largest = (labels == sizes.argmax()) & (both == 1)
        level[(level < 0) & ~largest] = (i - 1) / 10
    level[level < 0] = 1.0
    distances = []
    for alpha in (prediction, truth):
        distance = alpha - level
        distances.append(distance * (distance >= 0.15))
    return np.abs(distances[0] - distances[1])[mask].sum() / 1000


METRICS = {"sad": sad, "mse": mse, "grad": grad, "conn": conn}


def read(path):
    with open(path, "rb") as file:
        file.readline()
        width, height = map(int, file.readline().split())
        file.readline()
        return np.frombuffer(file.read(), np.uint8).reshape(height, width)


def errors(prediction, truth, trimap):
    """The values, and milliseconds of each metric over both regions."""
    prediction, truth = prediction / 255, truth / 255
    masks = {"unknown": (trimap >= 85) & (trimap <= 169), "all": np.ones(trimap.shape, bool)}
    values = {region: {} for region in masks}
    times = dict.fromkeys(METRICS, 0.0)
    for region, mask in masks.items():
        for name, metric in METRICS.items():
            begin = time.perf_counter()
            values[region][name] = float(metric(prediction, truth, mask))
            times[name] += 1000 * (time.perf_counter() - begin)
    return values, times


def main():
    program = pathlib.Path(sys.argv[1]) / "matting_portrait"
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            muster = json.loads(subprocess.run([program, folder], stdout=subprocess.PIPE, text=True, check=True).stdout)
            pictures = [read(f"{folder}/{name}.pgm") for name in ("prediction", "truth", "trimap")]
            values, times = errors(*pictures)
            ours.append(muster["ms"])
            theirs.append(times)
    least = {name: min(times[name] for times in theirs) for name in METRICS}
    ratio = sum(least.values()) / min(ours)
    wrong = [
        f"{region}/{name}: {muster[region][name]!r}, Python {value!r}"
        for region in values
        for name, value in values[region].items()
        if abs(muster[region][name] - value) > 1e-9 * abs(value)
    ]
    print("Matting errors of 1920x1080, both regions, milliseconds on one core (least of several)")
    print("  Python: " + ", ".join(f"{name} {least[name]:.0f}" for name in METRICS) + f", together {sum(least.values()):.0f}")
    print(f"  Muster: {min(ours):.2f} together, {ratio:.0f} times as fast (at least {LEAST_RATIO})")
    for line in wrong:
        print(f"  differs: {line}")
    sys.exit(1 if wrong or ratio < LEAST_RATIO else 0)


if __name__ == "__main__":
    main()
