"""Folders of the same kind that are nobody's: names and details differ from the 26, the ideas do not."""

import json

import numpy as np

from files import zip_files
from grading import Rules
from pictures import Look, class_scene, encoded, gauge_scene, look, scene
from registry import competition


def classes(folder, count, per_class, test_share, name):
    """(name, class) pairs for train and test; `name` makes a name."""
    return folder.split([[(name(), i) for _ in range(folder.count(per_class, 6))] for i in range(count)], test_share)


@competition("x-bird-notes", Rules("class", "accuracy"))
def make_birds(folder):
    """Tables with tabs between the cells; ids are paths with a folder; the sample has commas."""
    words = ("heron", "kestrel", "linnet", "nuthatch", "ouzel", "plover", "redstart", "siskin")
    name = lambda: f"plots/{folder.hex(2)}/{folder.hex(6)}.png"
    train, test = classes(folder, 8, 36, 0.3, name)
    for path, i in train + test:
        folder.picture(path, class_scene(folder.rng, i, 8))
    folder.table("train.tsv", ["file", "species", "observer"], [(p, words[i], "ab"[i % 2]) for p, i in train], "\t")
    folder.table("test.tsv", ["file", "observer"], [(p, "ab"[i % 2]) for p, i in test], "\t")
    folder.table("sample_submission.csv", ["file", "species"], [(p, "heron") for p, _ in test])
    folder.answers(["file", "species"], [(p, words[i]) for p, i in test])


@competition("x-mushroom-records", Rules("class", "macro_f1"))
def make_mushrooms(folder):
    """JSON lists of records in place of tables; names of pictures without their ending."""
    words = ("Amanita", "Boletus", "Cantharellus", "Lactarius", "Morchella", "Russula", "Suillus")
    train, test = classes(folder, 7, 40, 0.3, lambda: f"m{folder.hex(7)}")
    for name, i in train + test:
        folder.picture(f"photos/{name}.jpg", class_scene(folder.rng, i, 7))
    record = lambda name: {
        "photo": name,
        "wood": str(folder.rng.choice(["oak", "pine"])),
        "height_cm": int(folder.rng.integers(3, 20)),
    }
    folder.json("train.json", [{**record(name), "genus": words[i]} for name, i in train], indent=1)
    folder.json("test.json", [record(name) for name, _ in test], indent=1)
    folder.table("sample_submission.csv", ["photo", "genus"], [(name, "Amanita") for name, _ in test])
    folder.answers(["photo", "genus"], [(name, words[i]) for name, i in test])


@competition("x-tile-defects", Rules("chances", "auc", margin=0.07))
def make_tiles(folder):
    """Columns of 0 and 1, several per row; the table is called after the thing, the sample has 0.5."""
    columns = ["chip", "crack", "stain", "warp"]
    parts = {}
    for part, n, least in (("train", 360, 60), ("test", 140, 40)):
        parts[part] = []
        for _ in range(folder.count(n, least)):
            flags = [int(v) for v in folder.rng.random(4) < (0.4, 0.3, 0.25, 0.2)]
            name = f"T-{folder.hex(8).upper()}"
            folder.picture(
                f"tiles/{part}/{name}.JPG",
                scene(folder.rng, [look(i, 6) for i, one in enumerate(flags) if one], (120, 120)),
            )
            parts[part].append([name, *flags])
    folder.table("tiles.csv", ["tile", *columns], parts["train"])
    folder.table("sample_submission.csv", ["tile", *columns], [[row[0]] + [0.5] * 4 for row in parts["test"]])
    folder.answers(["tile", *columns], parts["test"])


@competition("x-soil-mix", Rules("number", "rmse", low=-1e9, high=1e9, margin=0.08))
def make_soil(folder):
    """Three numbers per row."""
    parts = {}
    for part, n, least in (("train", 360, 60), ("test", 140, 40)):
        parts[part] = []
        for i in range(folder.count(n, least)):
            shares = folder.rng.dirichlet((1.5, 1.5, 1.5))
            pixels = scene(folder.rng, [], (140, 140), tuple(0.15 + 0.7 * shares), lures=2)
            name = f"{part[0]}{i:05d}"
            folder.picture(f"{part}/{name}.jpg", pixels)
            parts[part].append([name, *(f"{100 * v:.2f}" for v in shares)])
    header = ["sample_id", "clay", "silt", "sand"]
    folder.table("train.csv", header, parts["train"])
    folder.table("sample_submission.csv", header, [[row[0], 33.3, 33.3, 33.3] for row in parts["test"]])
    folder.answers(header, parts["test"])


def make_lists(folder, separator, words, columns):
    """Several labels per row with something between them that is no blank."""
    parts = {}
    for part, n, least in (("train", 340, 60), ("test", 140, 40)):
        parts[part] = []
        for _ in range(folder.count(n, least)):
            chosen = sorted(
                int(i) for i in folder.rng.choice(len(words), int(folder.rng.choice((1, 1, 2, 3))), replace=False)
            )
            name = f"{folder.hex(10)}.jpg"
            folder.picture(f"{part}/{name}", scene(folder.rng, [look(i, 6) for i in chosen]))
            parts[part].append((name, separator.join(words[i] for i in chosen)))
    folder.table("train.csv", columns, parts["train"])
    placeholder = separator.join(words[:2])
    folder.table("sample_submission.csv", columns, [(name, placeholder) for name, _ in parts["test"]])
    folder.answers(columns, parts["test"])


@competition("x-street-signs", Rules("labels", "micro_f1", separator="|"))
def make_signs(folder):
    """Labels with `|` between them."""
    make_lists(folder, "|", ("crossing", "dead end", "no entry", "no parking", "stop", "yield"), ["picture", "signs"])


@competition("x-fruit-basket", Rules("labels", "micro_f1", separator=","))
def make_fruit(folder):
    """Labels with commas between them, so that cells have quotes."""
    make_lists(folder, ",", ("apple", "banana", "cherry", "fig", "grape", "plum"), ["image", "fruits"])


@competition("x-wall-cracks", Rules("share", "auc", margin=0.08))
def make_walls(folder):
    """True and False in train, probabilities in the answer."""
    header, parts = ["image_id", "is_cracked"], {}
    for part, n, least in (("train", 320, 60), ("test", 140, 40)):
        rows = [(f"w{i}_{folder.hex(4)}", bool(folder.rng.random() < 0.4)) for i in range(folder.count(n, least))]
        for name, cracked in rows:
            marks = [Look(None, 2, "plain", 0.1)] if cracked else [Look(None, 5, "plain", 0.1)]
            folder.picture(f"{part}_pictures/{name}.png", scene(folder.rng, marks, (130, 130), (0.6, 0.58, 0.55)))
        parts[part] = rows
    folder.table("train_labels.csv", header, parts["train"])
    folder.table("sample_submission.csv", header, [(name, 0.5) for name, _ in parts["test"]])
    folder.answers(header, [(name, int(cracked)) for name, cracked in parts["test"]])


@competition("x-pollen-grains", Rules("class", "accuracy"))
def make_pollen(folder):
    """Class folders inside train.zip."""
    words = ("alder", "birch", "grass", "hazel", "oak", "pine")
    train, test = classes(folder, 6, 44, 0.3, lambda: f"{folder.hex(6)}.jpg")
    zip_files(
        folder.file("train.zip"),
        [(f"train/{words[i]}/{name}", encoded(class_scene(folder.rng, i, 6))) for name, i in train],
    )
    zip_files(folder.file("test.zip"), [(f"test/{name}", encoded(class_scene(folder.rng, i, 6))) for name, i in test])
    folder.table("sample_submission.csv", ["file", "plant"], [(name, "alder") for name, _ in test])
    folder.answers(["file", "plant"], [(name, words[i]) for name, i in test])


@competition("x-shell-coco", Rules("whole", "accuracy"))
def make_shells(folder):
    """COCO's own names: annotations/instances_train.json with boxes, images in folders of their own."""
    numbers = sorted(folder.numbers(9, 200))
    ids = iter(folder.numbers(5000, 900000))
    train, test = classes(folder, 9, 34, 0.3, lambda: next(ids))
    for part, rows in (("train", train), ("test", test)):
        images = []
        for name, i in rows:
            pixels = class_scene(folder.rng, i, 9)
            folder.picture(f"images/{part}/{name:012d}.jpg", pixels)
            images.append(
                {"id": name, "file_name": f"{name:012d}.jpg", "width": pixels.shape[1], "height": pixels.shape[0]}
            )
        whole = {
            "info": {"version": "1"},
            "images": images,
            "categories": [{"id": n, "name": f"shell {n}"} for n in numbers],
        }
        if part == "train":
            whole["annotations"] = [
                {
                    "id": k,
                    "image_id": name,
                    "category_id": numbers[i],
                    "bbox": [10, 10, 60, 60],
                    "area": 3600,
                    "iscrowd": 0,
                    "segmentation": [],
                }
                for k, (name, i) in enumerate(rows)
            ]
        folder.json(f"annotations/{'instances_train' if part == 'train' else 'image_info_test'}.json", whole)
    folder.table("sample_submission.csv", ["image_id", "category_id"], [(name, 1) for name, _ in test])
    folder.answers(["image_id", "category_id"], [(name, numbers[i]) for name, i in test])


@competition("x-tea-leaves", Rules("class", "accuracy"))
def make_tea(folder):
    """No sample: the rows of test.csv are asked for."""
    words = ("Assam", "Ceylon", "Darjeeling", "Keemun", "Sencha")
    train, test = classes(folder, 5, 52, 0.3, lambda: f"leaf_{folder.hex(6)}.jpg")
    for name, i in train + test:
        folder.picture(f"pictures/{name}", class_scene(folder.rng, i, 5))
    folder.table("train.csv", ["filename", "variety"], [(name, words[i]) for name, i in train])
    folder.table("test.csv", ["filename"], [[name] for name, _ in test])
    folder.answers(["filename", "variety"], [(name, words[i]) for name, i in test])


@competition("x-bone-years", Rules("number", "mae", low=-1e9, high=1e9, margin=0.1))
def make_bones(folder):
    """A number of months; a column of the person's sex, which is spelled otherwise in test."""
    parts = {}
    for part, n, least in (("train", 340, 60), ("test", 140, 40)):
        parts[part] = []
        for name in folder.numbers(folder.count(n, least), 90000):
            male, months = bool(folder.rng.random() < 0.5), int(folder.rng.integers(12, 216))
            share = np.clip(months / 228 + (0.04 if male else -0.04), 0, 1)
            name += 1000 if part == "train" else 100000
            folder.picture(f"boneage-{part}-dataset/{name}.png", gauge_scene(folder.rng, share))
            parts[part].append((name, months, male))
    folder.table("boneage-training-dataset.csv", ["id", "boneage", "male"], parts["train"])
    folder.table(
        "boneage-test-dataset.csv",
        ["Case ID", "Sex"],
        [(name, "M" if male else "F") for name, _, male in parts["test"]],
    )
    folder.table("sample_submission.csv", ["Case ID", "boneage"], [(name, 100) for name, *_ in parts["test"]])
    folder.answers(["Case ID", "boneage"], [(name, months) for name, months, _ in parts["test"]])


@competition("x-leather-grade", Rules("grade", "kappa", low=1, high=5, margin=0.1))
def make_leather(folder):
    """Ordered grades from 1 to 5, and ids that are numbers with zeros before them."""
    grades = (1, 2, 3, 4, 5)
    names = iter(folder.numbers(5000, 100000))
    groups = [
        [(f"{next(names):06d}", grade) for _ in range(folder.count(n, 6))]
        for grade, n in zip(grades, (40, 90, 120, 60, 40))
    ]
    train, test = folder.split(groups, 0.3)
    for name, grade in train + test:
        share = np.clip((grade - 0.5 + folder.rng.normal(0, 0.2)) / 5, 0, 1)
        folder.picture(f"hides/{name}.png", gauge_scene(folder.rng, share))
    folder.table("train.csv", ["hide", "quality"], train)
    folder.table("test.csv", ["hide"], [[name] for name, _ in test])
    folder.table("sample_submission.csv", ["hide", "quality"], [(name, 3) for name, _ in test])
    folder.answers(["hide", "quality"], test)


@competition("x-driver-states", Rules("shares", "log_loss"))
def make_drivers(folder):
    """Class folders with a list of drivers beside them; the sample has a column per class."""
    words = [f"c{i}" for i in range(8)]
    train, test = classes(folder, 8, 40, 0.3, lambda: f"img_{folder.rng.integers(1, 10**6)}.jpg")
    for name, i in train:
        folder.picture(f"imgs/train/{words[i]}/{name}", class_scene(folder.rng, i, 8))
    for name, i in test:
        folder.picture(f"imgs/test/{name}", class_scene(folder.rng, i, 8))
    folder.table(
        "driver_imgs_list.csv",
        ["subject", "classname", "img"],
        [(f"p{int(folder.rng.integers(1, 30)):03d}", words[i], n) for n, i in train],
    )
    folder.table("sample_submission.csv", ["img", *words], [[name] + [0.125] * 8 for name, _ in test])
    folder.answers(["img", *words], [[name] + [int(i == k) for k in range(8)] for name, i in test])


@competition("x-odd-ids", Rules("share", "binary_log_loss"))
def make_odd(folder):
    """Ids that have no ending in train and one in the sample; the label is yes or no; a log is a decoy."""
    parts = {}
    for part, n, least in (("train", 320, 60), ("test", 140, 40)):
        rows = parts[part] = [
            (f"{i}-{folder.hex(4)}.v{i % 3}", int(folder.rng.random() < 0.5)) for i in range(folder.count(n, least))
        ]
        for name, label in rows:
            folder.picture(f"data/{part}/{name}.jpeg", scene(folder.rng, [look(3 if label else 0, 6)]))
    folder.table(
        "data/train_metadata.csv",
        ["key", "ripe", "weight"],
        [(name, "yes" if label else "no", int(folder.rng.integers(80, 200))) for name, label in parts["train"]],
    )
    folder.write("data/log.jsonl", "".join(json.dumps({"event": "photo", "n": i}) + "\n" for i in range(50)))
    folder.table("sample_submission.csv", ["key", "ripe"], [(f"{name}.jpeg", 0.5) for name, _ in parts["test"]])
    folder.answers(["key", "ripe"], [(f"{name}.jpeg", label) for name, label in parts["test"]])
