#!/usr/bin/env python3
"""Measures what Trainer.fit costs beside bare loops, and prints it as a table. docs/benchmarks.md explains the rows.

usage: bench/fit.py BIN [WHAT...]    BIN holds the programs; WHAT: time, instructions, ranks, start, lightning (all)

Exit 1 when a figure is beyond its limit.
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers/bin/python"

MOST_US = 5.0  # beside the difference of the bare loop with itself
MOST_INSTRUCTIONS = 30_000
MOST_RATIO = 1.1
MOST_START_S = 0.15
STARTS = 15


class Table:
    """Rows that are printed as they come."""

    FORM = "{:<44} {:>10} {:>10} {:>10}  {}"

    def __init__(self):
        self.failed = False
        print(self.FORM.format("", "Muster", "bare", "difference", "limit"), flush=True)

    def row(self, what, muster, bare, difference, limit="", good=True):
        self.failed = self.failed or not good
        verdict = limit + ("" if good else "  BEYOND IT")
        print(self.FORM.format(what, muster, bare, difference, verdict).rstrip(), flush=True)


def run(command, log, **options):
    """The standard output; what else it says goes to `log`."""
    with open(log, "a", encoding="utf-8") as errors:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{pathlib.Path(log).read_text()[-3000:]}")
    return result.stdout


def result_of(command, log):
    return json.loads(run(command, log).strip().splitlines()[-1])


def time_of_step(table, programs, folder, log):
    for workers, limited in ((2, True), (0, False)):
        blocks = result_of([programs / "fit_step", "time", folder / f"time-{workers}", str(workers)], log)
        least = {name: min(times) for name, times in blocks.items()}
        again = abs(least["bare"] - least["bare again"])
        difference = least["trainer"] - least["bare"]
        most = MOST_US + again
        table.row(f"us a step, least of {len(blocks['trainer'])} blocks"
                  + ("" if limited else ", loading in its thread"),
                  f"{least['trainer']:.1f}", f"{least['bare']:.1f}", f"{difference:+.1f}",
                  f"{MOST_US:.0f} + {again:.1f} (bare loop beside itself)" if limited else "",
                  not limited or difference <= most)


def instructions_of_step(table, programs, folder, log):
    dumps = folder / "callgrind"
    dumps.mkdir()
    steps = result_of(["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={dumps}/out",
                       programs / "fit_step", "instructions", folder / "instructions"], log)["steps"]
    counts = {}
    for dump in dumps.iterdir():
        text = dump.read_text(errors="replace")
        name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
        if name:
            counts[name[1]] = int(re.search(r"^summary: (\d+)", text, re.MULTILINE)[1]) / steps
    difference = counts["trainer"] - counts["bare"]
    table.row("instructions a step", f"{counts['trainer']:,.0f}", f"{counts['bare']:,.0f}", f"{difference:+,.0f}",
              f"{MOST_INSTRUCTIONS:,} (bare loop again: {counts['bare again'] - counts['bare']:+,.0f})",
              difference <= MOST_INSTRUCTIONS)


def one(values):
    """The one number that all steps have, or all that they have."""
    found = sorted(set(values))
    return f"{found[0]:.0f}" if len(found) == 1 else "/".join(f"{value:.0f}" for value in found)


def ranks(table, programs, folder, log):
    loops = result_of([programs / "fit_step", "ranks", folder / "ranks"], log)
    trainer, bare = loops["trainer"], loops["bare"]
    same = set(trainer["operations"]) == set(bare["operations"]) and len(set(bare["operations"])) == 1
    table.row("2 ranks: Gloo operations a step", one(trainer["operations"]), one(bare["operations"]), "", "equal", same)
    table.row("2 ranks: the same, with a row of values", one(trainer["operations with row"]), "", "")
    median = {name: statistics.median(loop["us"]) for name, loop in loops.items()}
    ratio = median["trainer"] / median["bare"]
    table.row(f"2 ranks: us a step, median of {len(bare['us'])}", f"{median['trainer']:.1f}", f"{median['bare']:.1f}",
              f"x {ratio:.3f}", f"x {MOST_RATIO} (bare loop beside itself: x {median['bare again'] / median['bare']:.3f})",
              ratio <= MOST_RATIO)


def start(table, programs, folder, log):
    """Both programs end right after their first optimizer step."""
    environment = os.environ | {"LD_PRELOAD": str(programs / "libfit_start_probe.so")}
    commands = {"minimal": [programs / "minimal", "fit", f"--trainer.run_dir={folder / 'start'}"],
                "bare": [programs / "fit_start_bare"]}
    times = {name: [] for name in commands}
    for number in range(STARTS + 1):
        for name, command in commands.items():
            begin = time.perf_counter()
            run(command, log, env=environment)
            if number > 0:  # the first reads the programs from the disk
                times[name].append(time.perf_counter() - begin)
    for what, of in (("least", min), ("median", statistics.median)):
        figures = {name: of(values) for name, values in times.items()}
        difference = figures["minimal"] - figures["bare"]
        limited = of is min
        table.row(f"s from start to first step, {what} of {STARTS}", f"{figures['minimal']:.3f}",
                  f"{figures['bare']:.3f}", f"{difference:+.3f}", f"{MOST_START_S}" if limited else "",
                  not limited or difference <= MOST_START_S)


def lightning(table, programs, folder, log):
    if not PEERS.exists():
        print("no .venv-peers: scripts/setup.sh bench makes it; Lightning is left out")
        return
    blocks = result_of([PEERS, ROOT / "bench/peers/lightning_step.py", folder / "lightning"], log)
    least = {name: min(blocks[name]) for name in ("lightning", "plain")}
    table.row(f"Lightning {blocks['version']} and Python: us a step", f"{least['lightning']:.1f}",
              f"{least['plain']:.1f}", f"{least['lightning'] - least['plain']:+.1f}")


def main():
    parts = {"time": time_of_step, "instructions": instructions_of_step, "ranks": ranks, "start": start,
             "lightning": lightning}
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(parts):
        sys.exit(__doc__)
    programs = pathlib.Path(sys.argv[1]).resolve()
    print(f"Trainer.fit on the work of examples/minimal; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in sys.argv[2:] or parts:
            parts[part](table, programs, folder, folder / "log")
    sys.exit(1 if table.failed else 0)


if __name__ == "__main__":
    main()
