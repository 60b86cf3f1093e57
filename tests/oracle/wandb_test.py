"""The real `wandb sync` uploads what the W&B logger wrote, to a stand-in for the server: every value, image and caption
arrives, also from a run that was killed."""
import json
import math
import os
import signal
import subprocess

PROGRAM = os.path.join(os.environ["MUSTER_BIN"], "write_sample_run")
SYNC = os.path.join(os.environ["MUSTER_TESTS"], "oracle", "wandb_sync.sh")


def synced(run_dir):
    """What the server holds after a sync of the only run in `run_dir`."""
    base = os.path.join(run_dir, "wandb")
    runs = [n for n in os.listdir(base) if n.startswith("offline-run-")]
    assert len(runs) == 1, runs
    subprocess.run(["bash", SYNC, os.path.join(base, runs[0]), os.environ["WANDB"], run_dir + ".json"], check=True)
    with open(run_dir + ".json", encoding="utf-8") as f:
        (run,) = json.load(f)["runs"].values()
    return run


def same(a, b):
    b = float(b) if isinstance(b, str) else b
    return a == b or (math.isnan(a) and math.isnan(b))


def check_rows(run, expected):
    rows = run["history"]
    assert [r["_step"] for r in rows] == list(range(len(rows)))
    assert all(b["_timestamp"] >= a["_timestamp"] for a, b in zip(rows, rows[1:]))
    for row, want in zip(rows, expected["rows"]):
        assert row["trainer/global_step"] == want["step"] and row["epoch"] == want["epoch"], row
        have = {k: v for k, v in row.items() if not k.startswith("_") and k not in ("trainer/global_step", "epoch")}
        assert have.keys() == want["values"].keys(), (have, want)
        assert all(same(have[k], v) for k, v in want["values"].items()), (have, want)
    for name, value in {k: v for want in expected["rows"] for k, v in want["values"].items()}.items():
        assert same(run["summary"][name], value), name


def check_images(run, expected):
    media = [(row, key, v) for row in run["history"] for key, v in row.items()
             if isinstance(v, dict) and v.get("_type") == "images/separated"]
    have = []
    for row, key, v in media:
        first = None
        for name, caption in zip(v["filenames"], v["captions"], strict=True):
            sha = run["files"][name]["sha256"]
            want = next(x for x in expected["images"] if x["sha256"] == sha)
            first = first or (want["width"], want["height"])
            have.append((key, row["trainer/global_step"], caption, sha))
        assert (v["width"], v["height"], v["count"], v["format"]) == (*first, len(v["filenames"]), "png"), v
    want = [(x["key"], x["step"], x["caption"], x["sha256"]) for x in expected["images"]]
    assert have == want, next((h, w) for h, w in zip(have, want) if h != w)


def check_local_files(run_dir, config):
    import yaml
    base = os.path.join(run_dir, "wandb", "latest-run", "files")
    with open(os.path.join(base, "config.yaml"), encoding="utf-8") as f:
        assert {k: v["value"] for k, v in yaml.safe_load(f).items()} == config
    with open(os.path.join(base, "wandb-summary.json"), encoding="utf-8") as f:
        assert json.load(f)["train/loss"] > 0


def main():
    subprocess.run([PROGRAM, "run"], check=True)
    with open("run/expected.json", encoding="utf-8") as f:
        expected = json.load(f)
    run = synced("run")
    assert run["exitcode"] == 0 and run["project"] == "sample" and run["display_name"] == "a name", run
    config = {k: v["value"] if isinstance(v, dict) and "value" in v else v for k, v in run["config"].items()}
    config.pop("_wandb", None)
    assert config == expected["config"], config
    check_rows(run, expected)
    check_images(run, expected)
    assert run["history"][-1]["note"] == "# A text\nwith <b>markup</b>"
    check_local_files("run", expected["config"])

    victim = subprocess.Popen([PROGRAM, "victim", "killed"], stdout=subprocess.PIPE, text=True)
    assert victim.stdout.readline() == "ready\n"
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    run = synced("victim")
    assert run["exitcode"] == 1, run["exitcode"]
    check_rows(run, expected)
    check_images(run, expected)
    print(f"wandb sync: {len(run['history'])} rows, {len(expected['images'])} images, also after a kill")


if __name__ == "__main__":
    main()
