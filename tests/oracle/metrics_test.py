"""Metrics over random inputs and options, against the real TorchMetrics.

It gets predictions of dtype double: it computes in the predictions' own type, Muster in double."""
import itertools

import torch
import torchmetrics.classification as tc
from metrics_cases import EXPECTED, add, compare, named, pick, value
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure
from torchmetrics.regression import MeanAbsoluteError, MeanSquaredError
from torchmetrics.segmentation import DiceScore, MeanIoU

TYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def scores(shape, kind):
    """Scores of a kind: whole tenths so that some are equal, or logits; of some dtype."""
    if kind == "tenths":
        drawn = torch.randint(0, 11, shape) / 10
    elif kind == "logits":
        drawn = torch.randn(shape) * 3
    else:
        drawn = torch.rand(shape)
    return drawn.to(pick(*TYPES))


def distinct_scores(samples, classes, inner):
    """Without equal ones among the classes of a sample, where torch.topk's choice is anyone's guess."""
    order = torch.rand(samples, inner, classes).argsort(-1).movedim(-1, 1).reshape(samples, classes, inner)
    return (order / classes).to(pick(*TYPES))


def targets(shape, classes, ignore_index):
    """Some classes never come; some elements are to be ignored."""
    some = torch.randperm(classes)[:pick(1, max(1, classes - 1), classes)]
    drawn = some[torch.randint(len(some), shape)]
    if ignore_index is not None:
        drawn[torch.rand(shape) < 0.3] = ignore_index
    return drawn


def doubled(preds):
    return preds.double() if preds.is_floating_point() else preds


def measured(metric, updates):
    for update in updates:
        metric.update(doubled(update["preds"]), update["target"])
    return metric.compute()


def is_empty(updates, ignore_index):
    return all((update["target"] == ignore_index).all() if ignore_index is not None else update["target"].numel() == 0
               for update in updates)


def multiclass_updates(classes, ignore_index, top_k):
    inner = pick(1, 1, 5)
    updates = []
    for _ in range(pick(1, 2, 5)):
        samples = pick(1, 3, 20)
        target = targets((samples, inner), classes, ignore_index)
        if top_k > 1:
            preds = distinct_scores(samples, classes, inner)
        elif pick(True, False):
            preds = targets((samples, inner), classes, None)
        else:
            preds = scores((samples, classes, inner), pick("tenths", "logits", "uniform"))
        updates.append({"preds": preds.squeeze(-1) if inner == 1 else preds,
                        "target": target.squeeze(-1) if inner == 1 else target})
    return updates


def yes_or_no_updates(labels, ignore_index):
    """Binary where `labels` is None."""
    updates = []
    for _ in range(pick(1, 2, 5)):
        shape = (pick(1, 3, 20),) + ((labels,) if labels else ()) + pick((), (), (4,))
        kind = pick("whole", "tenths", "logits", "uniform")
        preds = torch.randint(0, 2, shape) if kind == "whole" else scores(shape, kind)
        updates.append({"preds": preds, "target": targets(shape, 2, ignore_index)})
    return updates


def empty_like(expected):
    return {name: None for name in expected}


def add_counted(updates, metric, reference, options, ignore_index):
    expected = named(measured(reference, updates))
    add(metric, options, updates, empty_like(expected) if is_empty(updates, ignore_index) else expected)


def classification_cases():
    averages = ["micro", "macro", "weighted", "none"]
    for metric, average, ignore_index, top_k in itertools.product(
            ["Accuracy", "Precision", "Recall", "F1Score"], averages, [None, 1, -100], [1, 2, 3]):
        classes = pick(3, 5)
        zero = {} if metric == "Accuracy" else {"zero_division": pick(0, 1)}
        reference = getattr(tc, "Multiclass" + metric)(classes, top_k, average, ignore_index=ignore_index, **zero)
        add_counted(multiclass_updates(classes, ignore_index, top_k), metric, reference,
                    {"task": "multiclass", "num_classes": classes, "average": average, "top_k": top_k,
                     "ignore_index": ignore_index, **zero}, ignore_index)
    for metric, average, ignore_index in itertools.product(
            ["Accuracy", "Precision", "Recall", "F1Score"], averages, [None, -1, 2]):
        zero = {} if metric == "Accuracy" else {"zero_division": pick(0, 1)}
        threshold = pick(0.5, 0.25)
        labels = pick(2, 4)
        reference = getattr(tc, "Multilabel" + metric)(labels, threshold, average, ignore_index=ignore_index, **zero)
        add_counted(yes_or_no_updates(labels, ignore_index), metric, reference,
                    {"task": "multilabel", "num_labels": labels, "average": average, "threshold": threshold,
                     "ignore_index": ignore_index, **zero}, ignore_index)
        reference = getattr(tc, "Binary" + metric)(threshold, ignore_index=ignore_index, **zero)
        add_counted(yes_or_no_updates(None, ignore_index), metric, reference,
                    {"task": "binary", "threshold": threshold, "average": average, "ignore_index": ignore_index, **zero},
                    ignore_index)


def matrix_values(matrix):
    if matrix.ndim == 2:
        return {f"{i}/{j}": float(matrix[i, j]) for i in range(len(matrix)) for j in range(len(matrix))}
    return {f"{label}/{name}": number for label, part in enumerate(matrix) for name, number in matrix_values(part).items()}


NORMALIZE = {"true": "actual", "pred": "predicted"}


def without_hidden_logits(update, ignore_index):
    """Whether ignored scores outside [0, 1] make all of them logits is not alike in TorchMetrics' binary metrics."""
    preds, target = update["preds"], update["target"]
    kept = preds[target != ignore_index] if ignore_index is not None else preds
    return {"preds": preds if ((kept < 0) | (kept > 1)).any() else preds.clamp(0, 1), "target": target}


def confusion_cases():
    for normalize, ignore_index in itertools.product(["none", "true", "pred", "all"], [None, -1, 2]):
        size = pick(3, 6)
        for task, reference, updates in [
                ("multiclass", tc.MulticlassConfusionMatrix(size, ignore_index=ignore_index, normalize=normalize),
                 multiclass_updates(size, ignore_index, 1)),
                ("multilabel", tc.MultilabelConfusionMatrix(size, ignore_index=ignore_index, normalize=normalize),
                 yes_or_no_updates(size, ignore_index)),
                ("binary", tc.BinaryConfusionMatrix(ignore_index=ignore_index, normalize=normalize),
                 [without_hidden_logits(update, ignore_index) for update in yes_or_no_updates(None, ignore_index)])]:
            expected = matrix_values(measured(reference, updates))
            sizes = {"multiclass": {"num_classes": size}, "multilabel": {"num_labels": size}, "binary": {}}
            add("ConfusionMatrix", {"task": task, **sizes[task], "normalize": NORMALIZE.get(normalize, normalize), "as_values": True,
                                    "ignore_index": ignore_index}, updates,
                empty_like(expected) if is_empty(updates, ignore_index) else expected)


def ranking_updates(task, size, ignore_index):
    kind = pick("tenths", "logits", "uniform")
    updates = []
    for _ in range(pick(1, 2, 4)):
        inner = pick((), (), (4,))
        samples = pick(2, 5, 40)
        shape = (samples,) + (() if task == "binary" else (size,)) + inner
        target = targets((samples,) + inner if task == "multiclass" else shape, size if task == "multiclass" else 2,
                         ignore_index)
        updates.append({"preds": scores(shape, kind), "target": target})
    return updates


def has_positives_of_class_0_only(updates, ignore_index):
    return all(((update["target"] == 0) | (update["target"] == (-7 if ignore_index is None else ignore_index))).all()
               for update in updates)


def every_label_counts(updates, ignore_index):
    together = torch.cat([(update["target"] != ignore_index).transpose(0, 1).flatten(1) for update in updates], 1)
    return together.any(1).all()


def ranking_cases():
    for metric, task, average, ignore_index, _ in itertools.product(
            ["AUROC", "AveragePrecision"], ["binary", "multiclass", "multilabel"], ["micro", "macro", "weighted", "none"],
            [None, -1, 0], range(3)):
        if task == "multiclass" and average == "micro" or task != "multiclass" and ignore_index == 0:
            continue
        size = pick(2, 4)
        updates = ranking_updates(task, size, ignore_index)
        if is_empty(updates, ignore_index) or (task == "multilabel" and ignore_index is not None and
                                               not every_label_counts(updates, ignore_index)):
            continue
        sizes = {"multiclass": {"num_classes": size}, "multilabel": {"num_labels": size}, "binary": {}}[task]
        arguments = {"average": average} if task != "binary" else {}
        reference = getattr(tc, task.capitalize() + metric)(**sizes, **arguments, ignore_index=ignore_index)
        if metric == "AveragePrecision" and task == "multiclass" and has_positives_of_class_0_only(updates, ignore_index):
            # TorchMetrics takes "all are of class 0" for "none is of the class", whichever the class is.
            expected = {"0": 1.0} | {str(i): None for i in range(1, size)} if average == "none" else {".": 1.0}
        else:
            expected = named(measured(reference, updates))
        add(metric, {"task": task, **sizes, "average": average, "ignore_index": ignore_index}, updates, expected,
            1e-6 if average == "weighted" else 1e-9)  # TorchMetrics has float32 weights


def deviation_cases():
    for count, shift, correction in itertools.product([1, 2, 3, 100], [0, 1, 1e9], [0, 1]):
        values = torch.randn(count, dtype=torch.float64) + shift
        exact = torch.std(values - shift, correction=correction)  # the shift leaves few bits, alike in both
        updates = [{"values": part} for part in values.split(pick(1, 7, 100))]
        add("StandardDeviation", {"correction": correction}, updates, {".": value(exact)}, 1e-12)


def mask_updates(classes):
    """Classes or scores of pictures; some classes never come, some samples are of one class."""
    updates = []
    for _ in range(pick(1, 2, 4)):
        shape = (pick(1, 3), pick(1, 4), 5)
        target = torch.stack([targets(shape[1:], classes, None) for _ in range(shape[0])])
        preds = torch.stack([targets(shape[1:], classes, None) for _ in range(shape[0])])
        updates.append({"preds": torch.where(torch.rand(shape) < 0.4, target, preds), "target": target})
    return updates


def by_class(result, background):
    return {str(i + (not background)): value(number) for i, number in enumerate(result.reshape(-1))}


def segmentation_cases():
    for average, level, background, _ in itertools.product(
            ["micro", "macro", "weighted", "none"], ["samplewise", "global"], [True, False], range(4)):
        classes = pick(2, 5)
        updates = mask_updates(classes)
        score = measured(DiceScore(classes, background, average, level, "index"), updates)
        result = by_class(score, background) if average == "none" else named(score)
        add("DiceScore", {"num_classes": classes, "average": average, "aggregation_level": level,
                          "include_background": background}, updates, result)
    for background, _ in itertools.product([True, False], range(10)):
        classes = pick(2, 5)
        updates = mask_updates(classes)
        each = measured(MeanIoU(classes, background, True, "index"), updates)
        expected = by_class(each.where(each != -1, torch.nan), background)
        expected |= named(measured(MeanIoU(classes, background, False, "index"), updates).squeeze())
        add("MeanIoU", {"num_classes": classes, "include_background": background, "per_class": True}, updates, expected)
    for ignore_index, _ in itertools.product([None, 1, 255], range(6)):
        classes = pick(3, 5)
        updates = multiclass_updates(classes, ignore_index, 1)
        expected = named(measured(tc.MulticlassJaccardIndex(classes, ignore_index=ignore_index), updates))
        add("MeanIoU", {"num_classes": classes, "aggregation_level": "global", "ignore_index": ignore_index}, updates,
            empty_like(expected) if is_empty(updates, ignore_index) else expected)


def picture_updates(least, same_size):
    size = (pick(1, 3), pick(least, 23), pick(least, 31))
    updates = []
    for _ in range(pick(1, 3)):
        if not same_size:
            size = (size[0], pick(least, 17), pick(least, 40))
        target = torch.rand((pick(1, 4),) + size) * 255
        dtype = pick(torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.uint8)
        preds = (target + pick(0.1, 5, 40) * torch.randn(target.shape)).clamp(0, 255)
        updates.append({"preds": preds.to(dtype), "target": target.to(dtype)})
    return updates


def measured_in_double(metric, updates):
    for update in updates:
        metric.update(update["preds"].double(), update["target"].double())
    return metric.compute()


def picture_cases():
    for _ in range(12):
        updates = picture_updates(1, False)
        for metric, options, reference in [
                ("MeanSquaredError", {}, MeanSquaredError()),
                ("MeanSquaredError", {"squared": False}, MeanSquaredError(squared=False)),
                ("MeanAbsoluteError", {}, MeanAbsoluteError()),
                ("PSNR", {"data_range": 255}, PeakSignalNoiseRatio(255.0)),
                ("PSNR", {"data_range": 255, "base": 2}, PeakSignalNoiseRatio(255.0, base=2.0)),
                ("PSNR", {"data_range": 255, "per_image": True}, PeakSignalNoiseRatio(255.0, dim=(1, 2, 3)))]:
            add(metric, options, updates, named(measured_in_double(reference, updates)), 1e-9)
    for options in [{}, {}, {}, {"sigma": 0.8}, {"sigma": 2.5}, {"k1": 0.1, "k2": 0.2}, {"gaussian_kernel": False, "kernel_size": 7},
                    {"gaussian_kernel": False, "kernel_size": 3}]:
        updates = picture_updates(10, False)
        reference = StructuralSimilarityIndexMeasure(data_range=255.0, **options)
        add("SSIM", {"data_range": 255, **options}, updates, named(measured_in_double(reference, updates)), 1e-9)


classification_cases()
confusion_cases()
deviation_cases()
segmentation_cases()
torch.set_default_dtype(torch.float64)  # in which TorchMetrics divides integers and keeps states
ranking_cases()
picture_cases()
compare()

# The cases show something.
numbers = [number for expected, _ in EXPECTED.values() for number in expected.values()]
assert sum(number is None for number in numbers) > 20 and sum(0 < (number or 0) < 1 for number in numbers) > 500
