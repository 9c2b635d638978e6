"""Competitions with one class per row and JSON files in place of a table."""

from files import tar_files
from grading import Rules
from one_class import wild_rows, wild_scene
from pictures import class_scene, encoded
from registry import competition


def sheets(folder, classes, below, singles):
    """Classes with holes between their numbers, and how many pictures train and test have of each: (category, place,
    train, test). The last `singles` classes have one training picture."""
    numbers = sorted(folder.numbers(classes, below))
    most = folder.count(12, 3)
    rows = []
    for place, number in enumerate(folder.shuffled(numbers)):
        many = 1 if place >= classes - singles else int(folder.rng.integers(max(2, most - 4), most + 5))
        rows.append((number, place, many, 1 if many == 1 else max(1, many // 3)))
    return rows


def category_lists(rows):
    """The lists of a herbarium's JSON that are not pictures and labels."""
    categories = [
        {"id": n, "name": f"Genus{n % 7} species{n}", "family": f"Family{n % 3}", "genus": f"Genus{n % 7}"}
        for n, *_ in sorted(rows)
    ]
    regions = [{"id": 0, "name": "North"}, {"id": 1, "name": "South"}]
    licenses = [{"id": 1, "name": "Attribution-NonCommercial", "url": "http://creativecommons.org/licenses/by-nc/4.0/"}]
    info = {
        "year": 2020,
        "version": "1.0",
        "contributor": "nobody",
        "description": "sheets",
        "date_created": "2020-03-01",
    }
    return {"categories": categories, "regions": regions, "licenses": licenses, "info": info}


def make_herbarium(folder, root, classes, below, placeholder):
    """The folder of 2020 or 2021: train/ and test/ below `root`, each with its metadata.json."""
    rows = sheets(folder, classes, below, classes // 6)
    ids = iter(folder.numbers(1000 * len(rows), 2000 * len(rows)))
    images, annotations, held = [], [], []
    for number, place, train, test in rows:
        for _ in range(train):
            name = next(ids)
            file = f"images/{number // 100:03d}/{number % 100:02d}/{name}.jpg"
            pixels = class_scene(folder.rng, place, classes, tint=(0.8, 0.78, 0.7))
            folder.picture(f"{root}train/{file}", pixels)
            images.append(
                {"id": name, "file_name": file, "height": pixels.shape[0], "width": pixels.shape[1], "license": 1}
            )
            annotations.append(
                {"id": len(annotations), "image_id": name, "category_id": number, "region_id": number % 2}
            )
        held += [(number, place)] * test
    shown, answers = [], []
    for name, (number, place) in enumerate(folder.shuffled(held)):
        file = f"images/{name // 1000:03d}/{name}.jpg"
        pixels = class_scene(folder.rng, place, classes, tint=(0.8, 0.78, 0.7))
        folder.picture(f"{root}test/{file}", pixels)
        shown.append({"id": name, "file_name": file, "height": pixels.shape[0], "width": pixels.shape[1], "license": 1})
        answers.append((name, number))
    lists = category_lists(rows)
    folder.json(f"{root}train/metadata.json", {"annotations": annotations, "images": folder.shuffled(images), **lists})
    folder.json(f"{root}test/metadata.json", {"images": shown, "info": lists["info"], "licenses": lists["licenses"]})
    folder.table("sample_submission.csv", ["Id", "Predicted"], [(name, placeholder) for name, _ in answers])
    folder.answers(["Id", "Predicted"], answers)


@competition("herbarium-2020-fgvc7", Rules("whole", "macro_f1"))
def make_herbarium_2020(folder):
    """Everything below nybg2020/ but the sample."""
    make_herbarium(folder, "nybg2020/", 30, 32094, 0)


@competition("herbarium-2021-fgvc8", Rules("whole", "macro_f1"))
def make_herbarium_2021(folder):
    """The same without the folder around it."""
    make_herbarium(folder, "", 36, 64500, 1)


@competition("herbarium-2022-fgvc9", Rules("whole", "macro_f1"))
def make_herbarium_2022(folder):
    """The key is image_id, the test's JSON is a bare list, and only it leads from `0` to test-000000.jpg."""
    rows = sheets(folder, 32, 15505, 5)
    images, annotations, held = [], [], []
    for number, place, train, test in rows:
        for index in range(1, train + 1):
            name = f"{number:05d}__{index:03d}"
            file = f"{number // 100:03d}/{number % 100:02d}/{name}.jpg"
            folder.picture(f"train_images/{file}", class_scene(folder.rng, place, 32, tint=(0.82, 0.8, 0.74)))
            images.append({"image_id": name, "file_name": file, "license": 1})
            annotations.append(
                {"category_id": number, "genus_id": number % 7, "image_id": name, "institution_id": number % 3}
            )
        held += [(number, place)] * test
    shown, answers = [], []
    for index, (number, place) in enumerate(folder.shuffled(held)):
        file = f"{index // 1000:03d}/test-{index:06d}.jpg"
        folder.picture(f"test_images/{file}", class_scene(folder.rng, place, 32, tint=(0.82, 0.8, 0.74)))
        shown.append({"file_name": file, "image_id": str(index), "license": 1})
        answers.append((index, number))
    lists = {
        "categories": [
            {
                "category_id": n,
                "scientificName": f"Genus{n % 7} species{n}",
                "family": f"Family{n % 3}",
                "genus": f"Genus{n % 7}",
                "species": f"species{n}",
                "authors": "L.",
            }
            for n, *_ in sorted(rows)
        ],
        "genera": [{"genus_id": n, "genus": f"Genus{n}"} for n in range(7)],
        "distances": [{"genus_id_x": 0, "genus_id_y": n, "distance": 0.1 * n} for n in range(1, 7)],
        "institutions": [{"institution_id": n, "collectionCode": f"I{n}"} for n in range(3)],
        "licenses": [{"id": 1, "name": "CC BY", "url": "https://creativecommons.org/licenses/by/4.0/"}],
    }
    folder.json(
        "train_metadata.json", {"annotations": annotations, "images": images, **lists}, indent=4, sort_keys=True
    )
    folder.json("test_metadata.json", shown, indent=4, sort_keys=True)
    folder.table("sample_submission.csv", ["Id", "Predicted"], [(name, 42) for name, _ in answers])
    folder.answers(["Id", "Predicted"], answers)


@competition("inaturalist-2019-fgvc6", Rules("whole", "error"))
def make_inaturalist(folder):
    """Plain tar archives called .tar.gz, whose members lack the leading folder of `file_name`; a val2019.json whose
    pictures are nowhere."""
    groups = ("Amphibians", "Birds", "Insects", "Plants", "Reptiles")
    numbers = sorted(folder.numbers(24, 1010))
    ids = iter(folder.numbers(20000, 300000))
    rows = [
        [(next(ids), number, place, folder.hex(32)) for _ in range(folder.count(16, 6))]
        for place, number in enumerate(numbers)
    ]
    train, test = folder.split(rows, 0.25)
    parts = {"train_val2019": train, "test2019": test}
    shown = {}
    for part, some in parts.items():
        files, shown[part] = [], []
        for name, number, place, digits in some:
            file = f"{groups[number % 5]}/{number}/{digits}.jpg" if part == "train_val2019" else f"{digits}.jpg"
            pixels = class_scene(folder.rng, place, 24, radius=0.28)
            files.append((file, encoded(pixels)))
            shown[part].append(
                {
                    "id": name,
                    "file_name": f"{part}/{file}",
                    "width": pixels.shape[1],
                    "height": pixels.shape[0],
                    "license": 3,
                    "rights_holder": "somebody",
                }
            )
        tar_files(folder.file(f"{part}.tar.gz"), folder.shuffled(files))
    label = lambda number, name, n: {"id": n, "image_id": name, "category_id": number}
    rest = {"info": {"year": 2019, "version": "1.0"}, "licenses": [{"id": 3, "name": "CC BY-NC", "url": "-"}]}
    categories = [{"id": n, "name": f"species {n}", "kingdom": "Life", "genus": f"genus {n % 9}"} for n in numbers]
    folder.json(
        "train2019.json",
        {
            "annotations": [label(row[1], row[0], row[0]) for row in train],
            "categories": categories,
            "images": shown["train_val2019"],
            **rest,
        },
        indent=4,
        sort_keys=True,
    )
    absent = [(next(ids), number) for number in numbers for _ in range(3)]
    folder.json(
        "val2019.json",
        {
            "annotations": [label(number, name, name) for name, number in absent],
            "categories": categories,
            "images": [
                {
                    "id": name,
                    "file_name": f"train_val2019/{groups[number % 5]}/{number}/{folder.hex(32)}.jpg",
                    "width": 800,
                    "height": 600,
                    "license": 3,
                    "rights_holder": "somebody",
                }
                for name, number in absent
            ],
            **rest,
        },
    )
    folder.json("test2019.json", {"images": shown["test2019"], **rest}, indent=4, sort_keys=True)
    folder.table("kaggle_sample_submission.csv", ["id", "predicted"], [(row[0], 654) for row in test])
    folder.answers(["id", "predicted"], [(row[0], row[1]) for row in test])


@competition("iwildcam-2020-fgvc7", Rules("whole", "accuracy"))
def make_wildcam_2020(folder):
    """Annotations and test information in JSON, boxes of a detector for all pictures, classes with one picture."""
    kinds = [0, 2, 10, 24, 71, 115, 256, 374]
    train, test = wild_rows(folder, kinds, folder.numbers(18, 550), (35, 14, 13, 12, 10, 8, 6, 2))
    rare = [(folder.uuid(), number, int(train[0][2]), folder.uuid(), 1, 1) for number in (401, 555)]
    found, info = [], {
        "year": 2020,
        "version": "1",
        "description": "cameras",
        "contributor": "nobody",
        "date_created": "2020-03-01",
    }
    lists = {}
    for part, rows in (("train", train + rare), ("test", test)):
        lists[part] = []
        for name, kind, place, sequence, frame, frames in folder.shuffled(rows):
            shown = kinds.index(kind) if kind in kinds else 8
            folder.picture(f"{part}/{name}.jpg", wild_scene(folder.rng, place, shown))
            boxes = [{"category": "1", "bbox": [0.2, 0.2, 0.5, 0.5], "conf": 0.98}] if shown else []
            found.append({"id": name, "max_detection_conf": 0.98 if shown else 0.0, "detections": boxes})
            lists[part].append(
                {
                    "id": name,
                    "file_name": f"{name}.jpg",
                    "seq_id": sequence,
                    "seq_num_frames": frames,
                    "frame_num": frame,
                    "location": place,
                    "datetime": "2013-10-04 13:31:53.000",
                    "height": 1080,
                    "width": 1920,
                }
            )
    kind_of = {row[0]: row[1] for row in train + rare + test}
    categories = [{"id": n, "name": "empty" if n == 0 else f"animal {n}", "count": 1} for n in (*kinds, 401, 555)]
    folder.json(
        "iwildcam2020_train_annotations.json",
        {
            "annotations": [
                {"id": folder.uuid(), "image_id": one["id"], "category_id": kind_of[one["id"]], "count": 1}
                for one in lists["train"]
            ],
            "images": lists["train"],
            "categories": categories,
            "info": info,
        },
    )
    folder.json("iwildcam2020_test_information.json", {"images": lists["test"], "categories": categories, "info": info})
    folder.json(
        "iwildcam2020_megadetector_results.json",
        {
            "images": found,
            "detection_categories": {"1": "animal", "2": "person"},
            "info": {"detector": "megadetector_v3"},
        },
    )
    folder.table(
        "sample_submission.csv",
        ["Id", "Category"],
        [(one["id"], int(folder.rng.integers(0, 676))) for one in lists["test"]],
    )
    folder.answers(["Id", "Category"], [(one["id"], kind_of[one["id"]]) for one in lists["test"]])
