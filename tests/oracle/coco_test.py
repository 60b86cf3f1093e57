"""Mean average precision of random boxes, against the real pycocotools."""
import contextlib
import io
import itertools

import torch
from metrics_cases import EXPECTED, add, compare, pick
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def drawn_boxes(count):
    """[x, y, width, height] of all sizes in a picture of 200 x 160; some of width 0."""
    corner = torch.rand(count, 2) * torch.tensor([150.0, 110.0])
    size = torch.rand(count, 2) ** 2 * 140
    size[torch.rand(count) < 0.03] = 0
    return torch.cat([corner, size], 1).round(decimals=pick(0, 3))


def moved(boxes, by):
    """Detections of these boxes: near them or right on them."""
    return boxes + (torch.rand(boxes.shape) < 0.7) * torch.randn(boxes.shape) * by * boxes[:, 2:].repeat(1, 2)


def picture_of_boxes(classes, most, crowds, areas):
    truth = pick(0, 1, 4, most)
    picture = {"true_boxes": drawn_boxes(truth), "true_labels": torch.randint(0, classes, (truth,)) * 7 + 1}
    boxes, labels = [drawn_boxes(pick(0, 2, most))], []
    labels.append(torch.randint(0, classes + 1, (len(boxes[0]),)) * 7 + 1)
    for _ in range(pick(0, 1, 3)):
        boxes.append(moved(picture["true_boxes"], pick(0.02, 0.1)))
        labels.append(picture["true_labels"])
    picture |= {"boxes": torch.cat(boxes), "labels": torch.cat(labels)}
    count = len(picture["boxes"])
    picture["scores"] = torch.randint(0, 6, (count,)) / 5 if pick(True, False) else torch.rand(count)
    if crowds:
        picture["iscrowd"] = (torch.rand(truth) < 0.3).long()
    if areas:
        picture["area"] = torch.rand(truth) * 12000
    dtype = pick(torch.float64, torch.float32)
    return {role: tensor.to(dtype) if tensor.is_floating_point() else tensor for role, tensor in picture.items()}


def in_format(picture, box_format):
    def turned(box):
        corner, size = box[:, :2], box[:, 2:]
        return torch.cat([corner, corner + size] if box_format == "xyxy" else [corner + size / 2, size], 1)

    if box_format == "xywh":
        return picture
    return picture | {role: turned(picture[role]) for role in ("boxes", "true_boxes")}


def as_xywh(boxes, box_format):
    """In double, from the numbers that Muster gets."""
    first, second = boxes.double()[:, :2], boxes.double()[:, 2:]
    if box_format == "xyxy":
        return torch.cat([first, second - first], 1)
    return torch.cat([first - second / 2, second], 1) if box_format == "cxcywh" else boxes.double()


def coco_of(pictures, box_format):
    """What COCO's annotation and result files would hold."""
    labels = sorted({int(label) for picture in pictures for label in [*picture["true_labels"], *picture["labels"]]})
    truth, found = [], []
    for number, picture in enumerate(pictures):
        boxes = as_xywh(picture["true_boxes"], box_format).tolist()
        for i, box in enumerate(boxes):
            area = float(picture["area"][i]) if "area" in picture else box[2] * box[3]
            crowd = int(picture["iscrowd"][i]) if "iscrowd" in picture else 0
            truth.append({"id": len(truth) + 1, "image_id": number, "bbox": box, "area": area, "iscrowd": crowd,
                          "category_id": int(picture["true_labels"][i])})
        for box, score, label in zip(as_xywh(picture["boxes"], box_format).tolist(), picture["scores"].double().tolist(),
                                     picture["labels"].tolist()):
            found.append({"id": len(found) + 1, "image_id": number, "bbox": box, "area": box[2] * box[3], "iscrowd": 0,
                          "category_id": label, "score": score})
    images = [{"id": number} for number in range(len(pictures))]
    return [coco_api({"images": images, "annotations": boxes, "categories": [{"id": label} for label in labels]})
            for boxes in (truth, found)] + [labels]


def coco_api(dataset):
    api = COCO()
    api.dataset = dataset
    api.createIndex()
    return api


def coco_values(pictures, box_format):
    truth, found, labels = coco_of(pictures, box_format)
    evaluation = COCOeval(truth, found, "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    names = ["map", "map_50", "map_75", "map_small", "map_medium", "map_large", "mar_1", "mar_10", "mar_100", "mar_small",
             "mar_medium", "mar_large"]
    values = {name: float(stat) for name, stat in zip(names, evaluation.stats)}
    for k, label in enumerate(labels):
        values[f"map_per_class/{label}"] = float(evaluation.eval["precision"][:, :, k, 0, 2].mean())
        values[f"mar_100_per_class/{label}"] = float(evaluation.eval["recall"][:, k, 0, 2].mean())
    return {name: None if number == -1 else number for name, number in values.items()}


def add_coco(pictures, box_format):
    with contextlib.redirect_stdout(io.StringIO()):
        expected = coco_values(pictures, box_format)
    add("MeanAveragePrecision", {"box_format": box_format, "class_metrics": True}, pictures, expected, 1e-9)


def coco_cases():
    for crowds, areas, box_format, _ in itertools.product([False, True], [False, True], ["xyxy", "xywh", "cxcywh"], range(4)):
        classes, most = pick(1, 3), pick(3, 12)
        pictures = [in_format(picture_of_boxes(classes, most, crowds, areas), box_format) for _ in range(pick(1, 4, 9))]
        add_coco(pictures, box_format)
    add_coco([picture_of_boxes(1, 160, False, False) for _ in range(3)], "xywh")  # more than 100 of a class


coco_cases()
compare()

# The cases show something.
maps = [expected["map"] for expected, _ in EXPECTED.values()]
assert sum(0.1 < (number or 0) < 0.9 for number in maps) > 20 and None in maps, maps
