"""Competitions that ask for a ranked list, a number, or a class for pictures inside a BSON file."""
import numpy as np

from describe import describe
from files import bson
from grading import Rules
from pictures import class_scene, encoded, gauge_scene, look, scene
from registry import competition


def whale(rng, identity):
    """A fluke. There are 120 identities that differ by hue, texture and shape."""
    return scene(rng, [look(identity, 120)], (210, 105) if rng.random() < 0.6 else (150, 100), (0.45, 0.52, 0.58), radius=0.34)


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
    describe(
        folder, "Whose tail is that?",
        ["After centuries of whaling, recovering populations have to adapt to warming oceans. Scientists watch them with photographs: the "
         "shape and the markings of a tail tell one whale from another.",
         "Most whales have only a few pictures. Whales that are not in the training data should be labeled `new_whale`."],
        "map5", "For each `Image` in the test set, you may predict up to 5 labels for the whale `Id`, space-delimited.",
        ["Image,Id", "00029b3a.jpg,new_whale w_1287fbc w_98baff9 w_7554f44 w_1eafe46", "etc."],
        [("train.zip", "the training images"), ("train.csv", "maps the training Image to the appropriate whale Id"),
         ("test.zip", "the test images to predict the whale Id"), ("sample_submission.csv", "a sample submission")])


@competition("hotel-id-2021-fgvc8", Rules("ranked", "map5"))
def make_hotels(folder):
    """The folders are chains, not classes. Some hotels have one picture."""
    hotels = folder.numbers(32, 65000)
    chains = [int(folder.rng.integers(0, 7)) for _ in hotels]
    train, test = [], []
    for place, hotel in enumerate(hotels):
        many = 1 if place >= 27 else int(folder.rng.integers(folder.count(7, 2), folder.count(15, 4) + 1))
        row = lambda: (folder.hex(16) + ".jpg", chains[place], hotel, f"2019-0{folder.rng.integers(1, 10)}-13 11:42:55", place)
        train += [row() for _ in range(many)]
        test += [row() for _ in range(max(1, many // 3))] if many > 1 else []
    train, test = folder.shuffled(train), folder.shuffled(test)
    room = lambda place: class_scene(folder.rng, place, len(hotels), radius=0.28)
    for name, chain, _, _, place in train:
        folder.picture(f"train_images/{chain}/{name}", room(place))
    for name, *_, place in test:
        folder.picture(f"test_images/{name}", room(place))
    folder.table("train.csv", ["image", "chain", "hotel_id", "timestamp"], [row[:4] for row in train])
    folder.table("sample_submission.csv", ["image", "hotel_id"], [(row[0], "36363 53586 18807 64314 60181") for row in test])
    folder.answers(["image", "hotel_id"], [(row[0], row[2]) for row in test])
    describe(
        folder, "Which hotel is that?",
        ["Victims of trafficking are often photographed in hotel rooms. To know which hotel it was helps investigators, but rooms of one "
         "chain look alike and rooms of one hotel differ.",
         "Identify the hotel in each image of the test set. Images come from a crowd of travellers with an app."],
        "map5", "For each image in the test set, you must predict a space-delimited list of hotel IDs that could match that image. The list "
        "should be sorted such that the first ID is the most relevant one.", ["image,hotel_id", "99e91ad5f2870678.jpg,36363 53586 18807 64314 60181", "etc."],
        [("train.csv", "image - the image ID; chain - an ID code for the hotel chain; hotel_id - the target class; timestamp - when the image "
          "was taken"), ("sample_submission.csv", "a sample submission"), ("train_images", "76 folders, one per chain"),
         ("test_images", "the test set images")])


PETS = ("Subject Focus", "Eyes", "Face", "Near", "Action", "Accessory", "Group", "Collage", "Human", "Occlusion", "Info", "Blur")


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
    describe(
        folder, "Pictures that find a home",
        ["Pets with attractive photographs are adopted faster. Shelters would like to know which photograph to show, and what would make it "
         "better.",
         "The Pawpularity Score is derived from each pet profile's page view statistics. Predict it from the image and, if you like, from "
         "hand-labelled metadata: Focus, Eyes, Face, Near, Action, Accessory, Group, Collage, Human, Occlusion, Info, Blur."],
        "rmse", "For each `Id` in the test set, you must predict a value for the target variable, `Pawpularity`.",
        ["Id,Pawpularity", "0008dbfb52aa1dc6ee51ee02adf13537,99.24", "0014a7b528f1682f0cf3b73a991c17a0,61.71", "etc."],
        [("train/", "training set photos of the form {id}.jpg"), ("train.csv", "metadata for each photo in the training set as well as the "
          "target, the photo's Pawpularity score"), ("test/, test.csv", "the test set"), ("sample_submission.csv", "a sample submission")])


@competition("cdiscount-image-classification-challenge", Rules("whole", "accuracy"))
def make_products(folder):
    """BSON files of products with one to four pictures each; no picture files."""
    numbers = sorted(1000000000 + n for n in folder.numbers(12, 30000))
    ids = iter(folder.numbers(20000, 10**7))
    rows = [[(next(ids), number, place) for _ in range(folder.count(24, 6))] for place, number in enumerate(numbers)]
    train, test = folder.split(rows, 0.3)
    pictures = lambda place: [{"picture": encoded(class_scene(folder.rng, place, 12, size=(120, 120), tint=(0.9, 0.9, 0.9)))}
                              for _ in range(int(folder.rng.choice((1, 1, 1, 2, 3, 4))))]
    documents = [bson({"_id": name, "category_id": number, "imgs": pictures(place)}) for name, number, place in train]
    folder.write("train.bson", b"".join(documents))
    folder.write("train_example.bson", b"".join(documents[:100]))
    folder.write("test.bson", b"".join(bson({"_id": name, "imgs": pictures(place)}) for name, _, place in test))
    levels = [(n, "JARDIN - PISCINE" if n % 2 else "BIJOUX -  LUNETTES - MONTRES", f"RAYON {n % 5}", f"ARTICLE N\u00b0 {n % 977}") for n in numbers]
    folder.table("category_names.csv", ["category_id", "category_level1", "category_level2", "category_level3"], levels)
    header = ["_id", "category_id"]
    folder.table("sample_submission.csv", header, [(row[0], 1000010653) for row in test])
    folder.answers(header, [row[:2] for row in test])
    describe(
        folder, "Products and their categories",
        ["A shop with very many products sorts them by their descriptions. Where descriptions are poor, pictures could help.",
         "Each product has one to four images. The category tree has three levels, in French; the third is what has to be predicted. The "
         "data come as BSON files, short for binary JSON."],
        "accuracy", "For each `_id` in the test set, you must predict a `category_id`.",
        ["_id,category_id", "2,1000000055", "5,1000016018", "etc."],
        [("train.bson", "a list of dictionaries, one per product: `_id`, `category_id`, `imgs` with binary images"),
         ("train_example.bson", "the first 100 dictionaries in train.bson"), ("test.bson", "the same without category_id"),
         ("category_names.csv", "the hierarchy of product classification"), ("sample_submission.csv", "the submission format")])
