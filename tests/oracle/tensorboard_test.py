"""The real TensorBoard reads what the TensorBoard logger wrote: every scalar, picture and text, at its step."""
import hashlib
import json
import math
import os
import struct
import subprocess

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

PROGRAM = os.path.join(os.environ["MUSTER_BIN"], "write_sample_run")
KINDS = ("scalars", "images", "tensors", "histograms", "audio", "compressedHistograms")


def float32(value):
    try:
        return struct.unpack("<f", struct.pack("<f", float(value)))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def check_scalars(events, expected):
    want = {}
    for row in expected["rows"]:
        for name, value in [*row["values"].items(), ("epoch", row["epoch"])]:
            want.setdefault(name, []).append((row["step"], float32(value)))
    assert sorted(events.Tags()["scalars"]) == sorted(want), events.Tags()["scalars"]
    for name, points in want.items():
        have = [(e.step, e.value) for e in events.Scalars(name)]
        assert len(have) == len(points), name
        assert all(a == c and same(b, d) for (a, b), (c, d) in zip(have, points)), (name, have, points)


def check_images(events, expected):
    want = {}
    for image in expected["images"]:
        want.setdefault(f"{image['key']}/{image['index']}", []).append(image)
    for tag, images in want.items():
        metadata = events.SummaryMetadata(tag)
        assert metadata.plugin_data.plugin_name == "images", tag
        have = []
        for event in events.Tensors(tag):
            width, height, *pngs = event.tensor_proto.string_val
            have += [(event.step, int(width), int(height), hashlib.sha256(png).hexdigest()) for png in pngs]
        assert have == [(x["step"], x["width"], x["height"], x["sha256"]) for x in images], tag
        assert images[0]["caption"] in metadata.summary_description, tag


def main():
    subprocess.run([PROGRAM, "run"], check=True)
    with open("run/expected.json", encoding="utf-8") as f:
        expected = json.load(f)
    events = EventAccumulator("run/tensorboard", size_guidance={k: 0 for k in KINDS})
    events.Reload()
    check_scalars(events, expected)
    check_images(events, expected)
    (note,) = events.Tensors("note/text_summary")
    assert (note.step, note.tensor_proto.string_val[0]) == (400, b"# A text\nwith <b>markup</b>"), note
    assert events.SummaryMetadata("note/text_summary").plugin_data.plugin_name == "text"
    print(f"TensorBoard: {len(events.Tags()['scalars'])} scalars, {len(expected['images'])} images")


if __name__ == "__main__":
    main()
