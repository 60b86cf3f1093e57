#!/usr/bin/env bash
# The main job on two processes: trains, validates and predicts into runs/demo, then says where to look.
set -euo pipefail
cd "$(dirname "$0")/.."

run=runs/demo
program=build/release/bin/matting

# Done already, by this build: only show it again.
if ! grep -q '"predict"' "$run/results.json" 2>/dev/null || [ "$program" -nt "$run/results.json" ]; then
  rm -rf "$run"
  "$program" fit --devices 2 --run_dir "$run"
  "$program" validate --devices 2 --run_dir "$run" --ckpt_path last
  "$program" predict --devices 2 --run_dir "$run" --ckpt_path last
fi

python3 - "$run/results.json" <<'P'
import json, sys
results = json.load(open(sys.argv[1]))
metrics = results["validate"]["metrics"]
print(f"\n{results['fit']['steps']} steps trained, {results['validate']['samples']} images validated, {results['predict']['samples']} predicted, "
      f"{len(results['predict']['images'])} images logged. Mean over images:\n")
names = ["sad", "mse", "grad", "conn"]
print(" " * 38 + "".join(f"{n.upper():>10}" for n in names))
for prefix, label in (("val", "network"), ("trimap", "trimap taken as alpha")):
    for region in ("unknown", "all"):
        row = "".join(f"{metrics[f'{prefix}/{region}/{n}']:10.4f}" for n in names)
        print(f"{label + ', ' + region + ' region' * (region == 'unknown'):38}" + row)
left = metrics["val/unknown/sad"] / metrics["trimap/unknown/sad"]
print(f"\nThe network's SAD on the unknown region is {100 * (1 - left):.0f} % below that of the trimap taken as alpha.")
P
cat <<TEXT

  report       $run/report.html
  W&B          $(ls -d $run/wandb/offline-run-* | tail -1)   (wandb sync takes it)
  TensorBoard  tensorboard --logdir $run/tensorboard
TEXT
