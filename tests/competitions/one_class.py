"""Competitions with one class per row, a table and pictures."""

import numpy as np

from files import zip_files
from grading import Rules
from pictures import Look, class_scene, draw, encoded, gauge_scene, look, scene
from registry import competition

BREEDS = (
    "affenpinscher",
    "basenji",
    "border_collie",
    "chow",
    "dhole",
    "german_short-haired_pointer",
    "irish_wolfhound",
    "kelpie",
    "malamute",
    "pug",
    "samoyed",
    "whippet",
)
SPECIES = (
    "Acer_Circinatum",
    "Acer_Mono",
    "Alnus_Rubra",
    "Betula_Pendula",
    "Castanea_Sativa",
    "Cornus_Macrophylla",
    "Fagus_Sylvatica",
    "Ilex_Aquifolium",
    "Magnolia_Salicifolia",
    "Populus_Nigra",
    "Quercus_Rubra",
    "Quercus_x_Hispanica",
    "Salix_Fragilis",
    "Sorbus_Aria",
    "Tilia_Oliveri",
    "Ulmus_Bergmanniana",
)
DISEASES = {
    "0": "Cassava Bacterial Blight (CBB)",
    "1": "Cassava Brown Streak Disease (CBSD)",
    "2": "Cassava Green Mottle (CGM)",
    "3": "Cassava Mosaic Disease (CMD)",
    "4": "Healthy",
}


@competition("dog-breed-identification", Rules("shares", "log_loss"))
def make_dogs(folder):
    """Twelve breeds, 32 hexadecimal digits as ids."""
    rows = [(folder.hex(32), breed) for breed in BREEDS for _ in range(folder.count(32, 6))]
    train, test = folder.split([[r for r in rows if r[1] == b] for b in BREEDS], 0.25)
    for part, some in (("train", train), ("test", test)):
        for name, breed in some:
            folder.picture(f"{part}/{name}.jpg", class_scene(folder.rng, BREEDS.index(breed), len(BREEDS)))
    header = ["id", *BREEDS]
    even = round(1 / len(BREEDS), 16)
    folder.table("labels.csv", ["id", "breed"], train)
    folder.table("sample_submission.csv", header, [[name] + [even] * len(BREEDS) for name, _ in test])
    folder.answers(header, [[name] + [int(b == breed) for b in BREEDS] for name, breed in test])


def silhouette(rng, index):
    """A white leaf on black. Its outline tells a little about the species; sizes differ."""
    width, height = (int(n) for n in rng.integers(120, 320, 2))
    canvas = np.zeros((height, width, 3), dtype=np.float32)
    draw(canvas, rng, Look(None, (0, 2, 3, 5, 8)[index % 5], "plain", 1.0), 0.32, (0.5, 0.5))
    return np.where(canvas[..., 0] > 0.4, 255, 0).astype(np.uint8)


@competition("leaf-classification", Rules("shares", "log_loss", exact=True))
def make_leaves(folder):
    """One folder of pictures for train and test; 192 numbers that tell the species well."""
    columns = [f"{kind}{i}" for kind in ("margin", "shape", "texture") for i in range(1, 65)]
    typical = np.abs(np.random.default_rng(7).normal(0.016, 0.012, (len(SPECIES), 192)))
    rows = [
        (index, np.abs(typical[index] + folder.rng.normal(0, 0.007, 192)))
        for index in range(len(SPECIES))
        for _ in range(folder.count(16, 6))
    ]
    ids = folder.numbers(len(rows), 2 * len(rows))
    rows = [(name + 1, *row) for name, row in zip(ids, rows)]
    train, test = folder.split([[r for r in rows if r[1] == i] for i in range(len(SPECIES))], 0.3)
    for name, index, _ in rows:
        folder.picture(f"images/{name}.jpg", silhouette(folder.rng, index))
    header = ["id", *SPECIES]
    numbers = lambda values: [f"{value:.6f}" for value in values]
    folder.table("train.csv", ["id", "species", *columns], [[n, SPECIES[i], *numbers(v)] for n, i, v in train])
    folder.table("test.csv", ["id", *columns], [[n, *numbers(v)] for n, _, v in test])
    folder.table("sample_submission.csv", header, [[n] + [1 / len(SPECIES)] * len(SPECIES) for n, _, _ in test])
    folder.answers(header, [[n] + [int(i == k) for k in range(len(SPECIES))] for n, i, _ in test])


@competition("cassava-leaf-disease-classification", Rules("whole", "accuracy"))
def make_cassava(folder):
    """Five unbalanced classes; tfrecords that hold the same pictures again."""
    groups = [
        [(f"{folder.rng.integers(10**6, 4 * 10**9)}.jpg", label) for _ in range(folder.count(n, 5))]
        for label, n in enumerate((30, 55, 60, 190, 65))
    ]
    train, test = folder.split(groups, 0.25)
    for part, some in (("train", train), ("test", test)):
        for name, label in some:
            looks = [look((0, 3, 1, 2, 5)[label], 6)] * 2
            folder.picture(f"{part}_images/{name}", scene(folder.rng, looks, (200, 150), (0.25, 0.42, 0.22)))
        folder.write(f"{part}_tfrecords/ld_{part}00-{len(some)}.tfrec", folder.rng.bytes(20000))
    folder.json("label_num_to_disease_map.json", DISEASES)
    folder.table("train.csv", ["image_id", "label"], train)
    folder.table("sample_submission.csv", ["image_id", "label"], [(name, 4) for name, _ in test])
    folder.answers(["image_id", "label"], test)


@competition("aptos2019-blindness-detection", Rules("grade", "kappa", high=4, margin=0.1))
def make_aptos(folder):
    """Ordered grades 0 to 4; the picture's mark grows and reddens with the grade."""
    groups = [
        [(folder.hex(12), grade) for _ in range(folder.count(n, 6))] for grade, n in enumerate((150, 40, 90, 30, 40))
    ]
    train, test = folder.split(groups, 0.3)
    for part, some in (("train", train), ("test", test)):
        for name, grade in some:
            share = np.clip((grade + folder.rng.normal(0.5, 0.2)) / 5, 0, 1)
            folder.picture(
                f"{part}_images/{name}.png", gauge_scene(folder.rng, share, folder.rng.integers(110, 200, 2))
            )
    folder.table("train.csv", ["id_code", "diagnosis"], train)
    folder.table("test.csv", ["id_code"], [[name] for name, _ in test])
    folder.table("sample_submission.csv", ["id_code", "diagnosis"], [(name, 0) for name, _ in test])
    folder.answers(["id_code", "diagnosis"], test)


def camera(index):
    """What a camera of wildlife looks at: a colour of its own."""
    return np.array([0.3, 0.3, 0.3]) + np.random.default_rng(index).uniform(0, 0.25, 3)


def wild_scene(rng, place, kind, size=(170, 130)):
    """What the camera of a place sees: nothing for kind 0, otherwise an animal of that kind."""
    looks = [] if kind == 0 else [look(kind - 1, 8)]
    return scene(rng, looks, size, camera(place), lures=3, radius=rng.uniform(0.16, 0.26))


def wild_rows(folder, kinds, places, weights):
    """Sequences of one to three pictures at places: (id, kind, place, sequence, frame, frames). The last third of the
    places is for the test."""
    share = np.array(weights) / sum(weights)
    parts = []
    for wanted, some in (
        (folder.count(300, 60), places[: 2 * len(places) // 3]),
        (folder.count(130, 30), places[2 * len(places) // 3 :]),
    ):
        rows = []
        while len(rows) < wanted:
            kind, place, frames = (
                int(folder.rng.choice(kinds, p=share)),
                int(folder.rng.choice(some)),
                int(folder.rng.integers(1, 4)),
            )
            sequence = folder.uuid()
            rows += [(folder.uuid(), kind, place, sequence, frame, frames) for frame in range(1, frames + 1)]
        parts.append(rows)
    return parts


@competition("iwildcam-2019-fgvc6", Rules("whole", "macro_f1"))
def make_wildcam_2019(folder):
    """Zip archives without a folder inside, cameras that are new in test, a sample with a nameless first column."""
    kinds = [0, 1, 3, 4, 8, 10, 13, 16]
    train, test = wild_rows(folder, kinds, folder.numbers(18, 140), (55, 6, 10, 10, 6, 5, 4, 4))
    header = [
        "category_id",
        "date_captured",
        "file_name",
        "frame_num",
        "id",
        "location",
        "rights_holder",
        "seq_id",
        "seq_num_frames",
        "width",
        "height",
    ]
    for part, rows in (("train", train), ("test", test)):
        files, cells = [], []
        for name, kind, place, sequence, frame, frames in folder.shuffled(rows):
            files.append((f"{name}.jpg", encoded(wild_scene(folder.rng, place, kinds.index(kind)))))
            when = f"2011-0{folder.rng.integers(1, 10)}-1{folder.rng.integers(0, 10)} 0{frame}:1{frame}:24"
            cells.append([kind, when, f"{name}.jpg", frame, name, place, "Justin Brown", sequence, frames, 1024, 747])
        zip_files(folder.file(f"{part}_images.zip"), folder.shuffled(files))
        keep = 0 if part == "train" else 1
        folder.table(f"{part}.csv", header[keep:], [row[keep:] for row in cells])
    numbers = sorted(folder.numbers(len(test), 4 * len(test)))
    folder.table(
        "sample_submission.csv", ["", "Id", "Category"], [(number, row[4], 0) for number, row in zip(numbers, cells)]
    )
    folder.answers(["Id", "Category"], [(row[4], row[0]) for row in cells])


PLANT_COLUMNS = ("healthy", "multiple_diseases", "rust", "scab")


@competition("plant-pathology-2020-fgvc7", Rules("chances", "auc", exact=True, margin=0.08))
def make_plants_2020(folder):
    """One 1 per row in four columns; train and test lie in one folder."""
    shares = [0.29, 0.1, 0.33, 0.28]
    marks = {0: [], 1: [2, 0], 2: [0], 3: [2]}
    parts = {}
    for part, count in (("Train", folder.count(300, 48)), ("Test", folder.count(120, 32))):
        labels = folder.shuffled([i for i, share in enumerate(shares) for _ in range(round(count * share))])
        parts[part] = [(f"{part}_{n}", label) for n, label in enumerate(labels)]
        for name, label in parts[part]:
            looks = [look(i, 6) for i in marks[label] for _ in range(2)]
            folder.picture(f"images/{name}.jpg", scene(folder.rng, looks, (205, 137), (0.28, 0.45, 0.25), radius=0.14))
    header = ["image_id", *PLANT_COLUMNS]
    one_hot = lambda rows: [[name] + [int(i == label) for i in range(4)] for name, label in rows]
    folder.table("train.csv", header, one_hot(parts["Train"]))
    folder.table("test.csv", ["image_id"], [[name] for name, _ in parts["Test"]])
    folder.table("sample_submission.csv", header, [[name] + [0.25] * 4 for name, _ in parts["Test"]])
    folder.answers(header, one_hot(parts["Test"]))
