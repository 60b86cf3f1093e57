#!/usr/bin/env python3
"""Measures what an epoch's sync of 50 metrics costs, and prints it as tables. docs/benchmarks.md and docs/scale.md explain them.

usage: bench/sync.py BIN [WHAT...]    BIN holds the programs; WHAT: real, virtual (all)

Exit 1 when a figure is beyond its limit, or a sum is not the one of a single process.
"""

import os
import pathlib
import statistics
import sys
import tempfile

from fit import Table, result_of

RANKS = 4
MOST_OPERATIONS = 4
MOST_RATIO = 1.5
MOST_VIRTUAL_RANKS = 1024
METRICS = 50
SAMPLES = 10_000  # of a rank


def real(programs, log):
    print(f"An epoch's sync of {METRICS} metrics on {RANKS} processes; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    table = Table()
    result = result_of([programs / "sync_cost", "real", str(RANKS)], log)
    operations, sizes = result["operations"], result["sizes"]
    good = operations == len(sizes) and operations <= MOST_OPERATIONS
    table.row(f"Gloo operations, of {' and '.join(map(str, sizes))} bytes a rank", str(operations), str(len(sizes)), "",
              f"{MOST_OPERATIONS}", good)
    median = {name: statistics.median(result[name]) for name in ("sync", "bare", "bare again")}
    ratio = median["sync"] / median["bare"]
    table.row(f"us, median of {len(result['sync'])}", f"{median['sync']:.0f}", f"{median['bare']:.0f}", f"x {ratio:.2f}",
              f"x {MOST_RATIO} (bare beside itself: x {median['bare again'] / median['bare']:.2f})", ratio <= MOST_RATIO)
    tenth = {name: statistics.quantiles(result[name], n=10)[0] for name in ("sync", "bare")}
    table.row("us, the fastest tenth ends at", f"{tenth['sync']:.0f}", f"{tenth['bare']:.0f}",
              f"x {tenth['sync'] / tenth['bare']:.2f}")
    return not table.failed


def bytes_text(count):
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1000


def virtual(programs, log):
    print(f"The same on virtual ranks, {SAMPLES:,} samples each, beside gathering every sample's {METRICS} values")
    form = "{:>6} {:>11} {:>14} {:>14} {:>10} {:>18} {:>18}  {}"
    print(form.format("ranks", "operations", "a rank sends", "it receives", "ms of CPU", "gathering: sends", "it receives", "sums"))
    rows = result_of([programs / "sync_cost", "virtual", str(MOST_VIRTUAL_RANKS)], log)
    everything = METRICS * SAMPLES * 8
    for row in rows:
        alone = row["ranks"] == 1
        print(form.format(row["ranks"], row["operations"], bytes_text(row["sent"]), bytes_text(row["received"]),
                          f"{row['ms']:.2f}", bytes_text(0 if alone else everything),
                          bytes_text((row["ranks"] - 1) * everything), "equal" if row["exact"] else "DIFFER"))
    return all(row["exact"] for row in rows)


def main():
    parts = {"real": real, "virtual": virtual}
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(parts):
        sys.exit(__doc__)
    programs = pathlib.Path(sys.argv[1]).resolve()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for part in sys.argv[2:] or parts:
            good = parts[part](programs, pathlib.Path(folder) / "log") and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
