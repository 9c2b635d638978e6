"""Competitions with several labels per row."""

from grading import Rules
from pictures import backdrop, draw, finish, grey, grey_look, look, lure, scene
from registry import competition

LEAF_LABELS = ("scab", "frog_eye_leaf_spot", "complex", "rust", "powdery_mildew")
LEAF_SETS = (
    (("healthy",), 24),
    (("scab",), 25),
    (("frog_eye_leaf_spot",), 16),
    (("complex",), 8),
    (("rust",), 10),
    (("powdery_mildew",), 6),
    (("scab", "frog_eye_leaf_spot"), 5),
    (("frog_eye_leaf_spot", "complex"), 3),
    (("scab", "frog_eye_leaf_spot", "complex"), 2),
    (("rust", "complex"), 1),
)


@competition("plant-pathology-2021-fgvc8", Rules("labels", "micro_f1"))
def make_plants_2021(folder):
    """Up to three of five diseases, or `healthy` alone."""
    groups = [
        [(folder.hex(16) + ".jpg", labels) for _ in range(folder.count(4.6 * share, 3))] for labels, share in LEAF_SETS
    ]
    train, test = folder.split(groups, 0.3)
    for part, some in (("train", train), ("test", test)):
        for name, labels in some:
            looks = [look(LEAF_LABELS.index(one), 6) for one in labels if one != "healthy"]
            folder.picture(
                f"{part}_images/{name}", scene(folder.rng, looks, (200, 134), (0.3, 0.45, 0.26), radius=0.17)
            )
    header = ["image", "labels"]
    joined = lambda rows: [(name, " ".join(labels)) for name, labels in rows]
    folder.table("train.csv", header, joined(train))
    folder.table("sample_submission.csv", header, [(name, "healthy") for name, _ in test])
    folder.answers(header, joined(test))


@competition("imet-2020-fgvc7", Rules("labels", "micro_f1"))
def make_imet(folder):
    """Numbers as labels, and a labels.csv that is only the dictionary of their names."""
    groups = ("country", "culture", "dimension", "medium", "tags")
    numbers = sorted(folder.numbers(40, 3474))
    shares = [0.42, 0.36, 0.3, 0.25, 0.22] + [0.1 / (1 + i / 6) for i in range(35)]
    order = folder.shuffled(numbers)
    parts = {}
    for part, n, least in (("train", 400, 60), ("test", 150, 40)):
        parts[part] = []
        for _ in range(folder.count(n, least)):
            chosen = [i for i, share in enumerate(shares) if folder.rng.random() < share][:6] or [0]
            name = folder.hex(32)
            parts[part].append((name, " ".join(str(order[i]) for i in chosen)))
            folder.picture(
                f"{part}/{name}.png", scene(folder.rng, [look(i, 40) for i in chosen], folder.rng.integers(110, 170, 2))
            )
    header = ["id", "attribute_ids"]
    folder.table(
        "labels.csv",
        ["attribute_id", "attribute_name"],
        [(n, f"{groups[n * 5 // 3474]}::thing {n}") for n in range(3474)],
    )
    folder.table("train.csv", header, parts["train"])
    folder.table("sample_submission.csv", header, [(name, "0 1 2") for name, _ in parts["test"]])
    folder.answers(header, parts["test"])


LINES = (
    "ETT - Abnormal",
    "ETT - Borderline",
    "ETT - Normal",
    "NGT - Abnormal",
    "NGT - Borderline",
    "NGT - Incompletely Imaged",
    "NGT - Normal",
    "CVC - Abnormal",
    "CVC - Borderline",
    "CVC - Normal",
    "Swan Ganz Catheter Present",
)
LINE_SHARES = (0.1, 0.15, 0.3, 0.12, 0.14, 0.2, 0.25, 0.15, 0.3, 0.5, 0.12)


@competition("ranzcr-clip-catheter-line-classification", Rules("chances", "auc", margin=0.06))
def make_catheters(folder):
    """Ids with dots, eleven columns in train, nine in the sample; drawn lines in a table of their own."""
    name_of = lambda: "1.2.826.0.1.3680043.8.498." + "".join(str(d) for d in folder.rng.integers(0, 10, 38))
    parts = {}
    for part, n, least in (("train", 400, 60), ("test", 160, 50)):
        parts[part] = []
        for _ in range(folder.count(n, least)):
            labels = [int(folder.rng.random() < share) for share in LINE_SHARES]
            name = name_of()
            parts[part].append((name, labels, folder.hex(9)))
            folder.picture(f"{part}/{name}.jpg", chest(folder.rng, labels))
    folder.table(
        "train.csv",
        ["StudyInstanceUID", *LINES, "PatientID"],
        [[n, *labels, patient] for n, labels, patient in parts["train"]],
    )
    drawn = [
        (n, LINES[i], [[int(v) for v in folder.rng.integers(0, 2000, 2)] for _ in range(3)])
        for n, labels, _ in parts["train"][::3]
        for i, one in enumerate(labels)
        if one
    ]
    folder.table("train_annotations.csv", ["StudyInstanceUID", "label", "data"], drawn)
    header = ["StudyInstanceUID", *LINES[:9]]
    folder.table("sample_submission.csv", header, [[n] + [0] * 9 for n, _, _ in parts["test"]])
    folder.answers(header, [[n, *labels[:9]] for n, labels, _ in parts["test"]])


def chest(rng, labels):
    """A grey picture with a mark for each label that is 1, in that label's part of the picture."""
    width, height = (int(n) for n in rng.integers(150, 190, 2))
    canvas = backdrop(rng, width, height, (0.35, 0.35, 0.35), 0.12)
    lure(canvas, rng, False)
    for i, one in enumerate(labels):
        if one:
            place = ((i % 4 + 0.5) / 4 + rng.uniform(-0.05, 0.05), (i // 4 + 0.5) / 3 + rng.uniform(-0.06, 0.06))
            draw(canvas, rng, grey_look(i), rng.uniform(0.1, 0.13), place)
    return grey(finish(canvas, rng))
