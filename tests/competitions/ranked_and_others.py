"""Competitions that ask for a ranked list, a number, or a class for pictures inside a BSON file."""

import numpy as np

from files import bson
from grading import Rules
from pictures import class_scene, encoded, gauge_scene, look, scene
from registry import competition


def whale(rng, identity):
    """A fluke. There are 120 identities that differ by hue, texture and shape."""
    return scene(
        rng, [look(identity, 120)], (210, 105) if rng.random() < 0.6 else (150, 100), (0.45, 0.52, 0.58), radius=0.34
    )


@competition("humpback-whale-identification", Rules("ranked", "map5", exact=True))
def make_whales(folder):
    """Most whales have few pictures; `new_whale` is very many whales with one picture each."""
    names = [f"w_{folder.hex(7)}" for _ in range(25)]
    most = [22, 18, 16, 14, 12, 12, 10, 10] + [6] * 7 + [4] * 5 + [2] * 5
    train, test = [], []
    for identity, many in enumerate(most):
        some = [(folder.hex(8) + ".jpg", names[identity], identity) for _ in range(folder.count(many * 1.3, 2))]
        train += some
        test += [(folder.hex(8) + ".jpg", names[identity], identity) for _ in range(max(1, len(some) // 3))]
    for part, many in ((train, folder.count(70, 10)), (test, folder.count(28, 8))):
        part += [(folder.hex(8) + ".jpg", "new_whale", int(folder.rng.integers(25, 120))) for _ in range(many)]
    train, test = folder.shuffled(train), folder.shuffled(test)
    for part, some in (("train", train), ("test", test)):
        for name, _, identity in some:
            folder.picture(f"{part}/{name}", whale(folder.rng, identity))
    folder.table("train.csv", ["Image", "Id"], [row[:2] for row in train])
    placeholder = " ".join(["new_whale"] + [f"w_{folder.hex(7)}" for _ in range(4)])
    folder.table("sample_submission.csv", ["Image", "Id"], [(row[0], placeholder) for row in test])
    folder.answers(["Image", "Id"], [row[:2] for row in test])


@competition("hotel-id-2021-fgvc8", Rules("ranked", "map5"))
def make_hotels(folder):
    """The folders are chains, not classes. Some hotels have one picture."""
    hotels = folder.numbers(32, 65000)
    chains = [int(folder.rng.integers(0, 7)) for _ in hotels]
    train, test = [], []
    for place, hotel in enumerate(hotels):
        many = 1 if place >= 27 else int(folder.rng.integers(folder.count(7, 2), folder.count(15, 4) + 1))
        held = max(1, many // 3) if many > 1 else 0
        rows = [
            (folder.hex(16) + ".jpg", chains[place], hotel, f"2019-0{folder.rng.integers(1, 10)}-13 11:42:55", place)
            for _ in range(many + held)
        ]
        train += rows[:many]
        test += rows[many:]
    train, test = folder.shuffled(train), folder.shuffled(test)
    room = lambda place: class_scene(folder.rng, place, len(hotels), radius=0.28)
    for name, chain, _, _, place in train:
        folder.picture(f"train_images/{chain}/{name}", room(place))
    for name, *_, place in test:
        folder.picture(f"test_images/{name}", room(place))
    folder.table("train.csv", ["image", "chain", "hotel_id", "timestamp"], [row[:4] for row in train])
    folder.table(
        "sample_submission.csv", ["image", "hotel_id"], [(row[0], "36363 53586 18807 64314 60181") for row in test]
    )
    folder.answers(["image", "hotel_id"], [(row[0], row[2]) for row in test])


PETS = (
    "Subject Focus",
    "Eyes",
    "Face",
    "Near",
    "Action",
    "Accessory",
    "Group",
    "Collage",
    "Human",
    "Occlusion",
    "Info",
    "Blur",
)


@competition("petfinder-pawpularity-score", Rules("number", "rmse", low=1, high=100, margin=0.1))
def make_pets(folder):
    """A number from 1 to 100; the twelve columns of 0 and 1 say next to nothing."""
    parts = {}
    for part, n, least in (("train", 380, 60), ("test", 150, 40)):
        parts[part] = []
        for _ in range(folder.count(n, least)):
            score = int(np.clip(folder.rng.normal(40, 22), 1, 100))
            flags = [int(folder.rng.random() < 0.1 + 0.07 * i) for i in range(12)]
            name = folder.hex(32)
            parts[part].append([name, *flags, score])
            share = np.clip(score / 100 + folder.rng.normal(0, 0.03), 0, 1)
            folder.picture(f"{part}/{name}.jpg", gauge_scene(folder.rng, share, folder.rng.integers(110, 190, 2)))
    folder.table("train.csv", ["Id", *PETS, "Pawpularity"], parts["train"])
    folder.table("test.csv", ["Id", *PETS], [row[:-1] for row in parts["test"]])
    guess = lambda: round(float(folder.rng.uniform(1, 100)), 2)
    folder.table("sample_submission.csv", ["Id", "Pawpularity"], [(row[0], guess()) for row in parts["test"]])
    folder.answers(["Id", "Pawpularity"], [(row[0], row[-1]) for row in parts["test"]])


@competition("cdiscount-image-classification-challenge", Rules("whole", "accuracy"))
def make_products(folder):
    """BSON files of products with one to four pictures each; no picture files."""
    numbers = sorted(1000000000 + n for n in folder.numbers(12, 30000))
    ids = iter(folder.numbers(20000, 10**7))
    rows = [[(next(ids), number, place) for _ in range(folder.count(24, 6))] for place, number in enumerate(numbers)]
    train, test = folder.split(rows, 0.3)
    pictures = lambda place: [
        {"picture": encoded(class_scene(folder.rng, place, 12, size=(120, 120), tint=(0.9, 0.9, 0.9)))}
        for _ in range(int(folder.rng.choice((1, 1, 1, 2, 3, 4))))
    ]
    documents = [bson({"_id": name, "category_id": number, "imgs": pictures(place)}) for name, number, place in train]
    folder.write("train.bson", b"".join(documents))
    folder.write("train_example.bson", b"".join(documents[:100]))
    folder.write("test.bson", b"".join(bson({"_id": name, "imgs": pictures(place)}) for name, _, place in test))
    levels = [
        (
            n,
            "JARDIN - PISCINE" if n % 2 else "BIJOUX -  LUNETTES - MONTRES",
            f"RAYON {n % 5}",
            f"ARTICLE N\u00b0 {n % 977}",
        )
        for n in numbers
    ]
    folder.table("category_names.csv", ["category_id", "category_level1", "category_level2", "category_level3"], levels)
    header = ["_id", "category_id"]
    folder.table("sample_submission.csv", header, [(row[0], 1000010653) for row in test])
    folder.answers(header, [row[:2] for row in test])
