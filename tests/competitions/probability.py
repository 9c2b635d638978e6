"""Competitions that ask for one number per row: the probability of 1."""

import io
import json

import numpy as np
from PIL import Image

import dicom
from files import seven_zip, zip_files
from grading import Rules
from pictures import Look, backdrop, draw, encoded, finish, look, scene, smooth
from registry import competition


def labelled(folder, many, share, name):
    """(name, 0 or 1) pairs in random order; `share` of them are 1. `name` makes a name."""
    return folder.shuffled([(name(), int(i < round(many * share))) for i in range(many)])


@competition("aerial-cactus-identification", Rules("share", "auc", margin=0.08))
def make_cactus(folder):
    """32x32 pictures in two zip archives."""
    parts = {
        part: labelled(folder, folder.count(n, least), 0.7, lambda: folder.hex(32) + ".jpg")
        for part, n, least in (("train", 400, 60), ("test", 150, 40))
    }
    for part, rows in parts.items():
        pixels = lambda label: scene(
            folder.rng, [Look(0.36, 3, "stripes")] if label else [], (32, 32), (0.5, 0.44, 0.4), lures=3
        )
        zip_files(folder.file(f"{part}.zip"), folder.shuffled([(name, encoded(pixels(label))) for name, label in rows]))
    folder.table("train.csv", ["id", "has_cactus"], parts["train"])
    folder.table("sample_submission.csv", ["id", "has_cactus"], [(name, 0.5) for name, _ in parts["test"]])
    folder.answers(["id", "has_cactus"], parts["test"])


@competition("dogs-vs-cats-redux-kernels-edition", Rules("share", "binary_log_loss"))
def make_dogs_cats(folder):
    """No table: the names of the training pictures are the labels. The same pictures are there as zip archives."""
    files = {"train": [], "test": []}
    answers = []
    pixels = lambda dog: encoded(scene(folder.rng, [look(4 if dog else 1, 6)]))
    for n in range(folder.count(160, 24)):
        files["train"] += [(f"train/cat.{n}.jpg", pixels(0)), (f"train/dog.{n}.jpg", pixels(1))]
    for n in range(1, folder.count(120, 30) + 1):
        answers.append((n, int(folder.rng.integers(0, 2))))
        files["test"].append((f"test/{n}.jpg", pixels(answers[-1][1])))
    for part, some in files.items():
        zip_files(folder.file(f"{part}.zip"), some)
        for name, content in some:
            folder.write(name, content)
    folder.table("sample_submission.csv", ["id", "label"], [(n, 0.5) for n, _ in answers])
    folder.answers(["id", "label"], answers)


@competition("histopathologic-cancer-detection", Rules("share", "auc", margin=0.08))
def make_histopathology(folder):
    """TIFF files of 96x96 that are not compressed. What counts lies in the middle."""
    header, parts = ["id", "label"], {}
    for part, n, least in (("train", 360, 60), ("test", 150, 40)):
        parts[part] = labelled(folder, folder.count(n, least), 0.4, lambda: folder.hex(40))
        for name, label in parts[part]:
            canvas = backdrop(folder.rng, 96, 96, (0.78, 0.55, 0.7), 0.14)
            for _ in range(3):
                draw(canvas, folder.rng, Look(0.78, 0, "plain", 0.6), 0.08, folder.rng.uniform(0.1, 0.9, 2), 0.7)
            if label:
                for _ in range(4):
                    draw(canvas, folder.rng, Look(0.7, 5, "rings", 0.5), 0.11, folder.rng.uniform(0.33, 0.67, 2))
            folder.picture(f"{part}/{name}.tif", finish(canvas, folder.rng))
    folder.table("train_labels.csv", header, parts["train"])
    folder.table("sample_submission.csv", header, [(name, 0) for name, _ in parts["test"]])
    folder.answers(header, parts["test"])


def patient_rows(folder, many, share, texts):
    """Rows of siim-isic: (image, patient, sex, age, site, diagnosis, benign or malignant, target). Patients repeat;
    old men have melanomas a little more often; some cells are empty."""
    rows = []
    while len(rows) < many:
        patient, man = f"IP_{folder.rng.integers(10**6, 10**7)}", folder.rng.random() < 0.5
        age = 5 * int(folder.rng.integers(4, 18))
        for _ in range(int(folder.rng.integers(1, 6))):
            target = int(folder.rng.random() < share * (0.6 + 0.4 * man + age / 100))
            sex = "" if folder.rng.random() < 0.05 else "male" if man else "female"
            site = "" if folder.rng.random() < 0.08 else str(folder.rng.choice(texts))
            diagnosis = "melanoma" if target else str(folder.rng.choice(("unknown", "nevus", "seborrheic keratosis")))
            name = f"ISIC_{folder.rng.integers(0, 10**7):07d}"
            rows.append(
                (
                    name,
                    patient,
                    sex,
                    "" if sex == "" else f"{age}.0",
                    site,
                    diagnosis,
                    "malignant" if target else "benign",
                    target,
                )
            )
    return rows[:many]


@competition("siim-isic-melanoma-classification", Rules("share", "auc", margin=0.06))
def make_melanoma(folder):
    """The same pictures as JPEG and as DICOM; columns that give the label away are not in test."""
    sites = ("torso", "lower extremity", "upper extremity", "head/neck", "palms/soles", "oral/genital")
    header = [
        "image_name",
        "patient_id",
        "sex",
        "age_approx",
        "anatom_site_general_challenge",
        "diagnosis",
        "benign_malignant",
        "target",
    ]
    parts = {}
    for part, n, least in (("train", 320, 60), ("test", 160, 50)):
        rows = parts[part] = patient_rows(folder, folder.count(n, least), 0.15, sites)
        for name, *_, target in rows:
            marks = [Look(0.98, 3, "checks", 0.5)] if target else [Look(0.07, 0, "plain", 0.5)]
            pixels = scene(folder.rng, marks, (180, 120) if folder.rng.random() < 0.5 else (160, 160), (0.8, 0.6, 0.52))
            folder.picture(f"jpeg/{part}/{name}.jpg", pixels)
            jpeg = encoded(pixels, subsampling="4:2:2")
            folder.write(f"{part}/{name}.dcm", dicom.photograph(jpeg, pixels.shape[1::-1]))
        folder.write(f"tfrecords/{part}00-{len(rows)}.tfrec", folder.rng.bytes(20000))
    folder.table("train.csv", header, parts["train"])
    folder.table("test.csv", header[:5], [row[:5] for row in parts["test"]])
    folder.table("sample_submission.csv", ["image_name", "target"], [(row[0], 0) for row in parts["test"]])
    folder.answers(["image_name", "target"], [(row[0], row[-1]) for row in parts["test"]])


@competition("statoil-iceberg-classifier-challenge", Rules("share", "binary_log_loss"))
def make_icebergs(folder):
    """Nothing but three 7z archives; the pictures are lists of numbers in JSON."""
    answers = []
    for part, n, least in (("train", 180, 40), ("test", 80, 30)):
        records = []
        for name, label in labelled(folder, folder.count(n, least), 0.47, lambda: folder.hex(8)):
            bands = []
            place, radius = folder.rng.uniform(0.4, 0.6, 2), folder.rng.uniform(0.16, 0.22)
            for offset in (-20, -26):
                canvas = np.zeros((75, 75, 3), dtype=np.float32)
                draw(
                    canvas, folder.rng, Look(None, 2 if label else 5, "plain" if label else "rings", 1.0), radius, place
                )
                sea = offset + 2 * smooth(folder.rng, 75, 75, 6) + folder.rng.normal(0, 1.6, (75, 75))
                bands.append([round(float(v), 3) for v in (sea + 14 * canvas[..., 0]).ravel()])
            angle = (
                "na" if part == "train" and folder.rng.random() < 0.08 else round(float(folder.rng.uniform(30, 46)), 4)
            )
            record = {"id": name, "band_1": bands[0], "band_2": bands[1], "inc_angle": angle}
            records.append({**record, "is_iceberg": label} if part == "train" else record)
            if part == "test":
                answers.append((name, label))
        seven_zip(folder.file(f"{part}.json.7z"), f"{part}.json", json.dumps(records).encode())
    sample = "id,is_iceberg\n" + "".join(f"{name},0.5\n" for name, _ in answers)
    seven_zip(folder.file("sample_submission.csv.7z"), "sample_submission.csv", sample.encode())
    folder.answers(["id", "is_iceberg"], answers)


def cadence(rng, bank, label):
    """Six panels of noise; with a signal a drifting line in the first, third and fifth."""
    size = 6 * 273 * 256
    start = int(rng.integers(0, bank.size - size))
    panels = bank[start : start + size].reshape(6, 273, 256).copy()
    if label:
        first, drift = rng.uniform(40, 216), rng.uniform(-0.08, 0.08)
        rows = np.arange(273)
        for panel in (0, 2, 4):
            columns = (first + drift * (rows + 273 * panel)).astype(int)
            for wide in range(5):
                panels[panel, rows, np.clip(columns + wide, 0, 255)] += np.float16(3.5)
    return panels


@competition("seti-breakthrough-listen", Rules("share", "auc", margin=0.07))
def make_seti(folder):
    """Arrays in .npy, and a folder of old data that is of no use."""
    bank = folder.rng.standard_normal(2 * 6 * 273 * 256, dtype=np.float32).astype(np.float16)
    parts = {}
    for part, n, least in (("train", 170, 24), ("test", 80, 24)):
        parts[part] = labelled(folder, folder.count(n, least), 0.4, lambda: folder.hex(15))
        for name, label in parts[part]:
            write_array(folder, f"{part}/{name[0]}/{name}.npy", cadence(folder.rng, bank, label))
    old = labelled(folder, 6, 0.5, lambda: folder.hex(12))
    for i, (name, label) in enumerate(old):
        half = "train_old" if i < 4 else "test_old"
        write_array(folder, f"old_leaky_data/{half}/{name[0]}/{name}.npy", cadence(folder.rng, bank, 1 - label))
    folder.table("old_leaky_data/train_labels_old.csv", ["id", "target"], old[:4])
    folder.table("old_leaky_data/test_labels_old.csv", ["id", "target"], old[4:])
    folder.table("train_labels.csv", ["id", "target"], parts["train"])
    folder.table("sample_submission.csv", ["id", "target"], [(name, 0.5) for name, _ in parts["test"]])
    folder.answers(["id", "target"], parts["test"])


def write_array(folder, name, array):
    """Writes an array as numpy does."""
    target = io.BytesIO()
    np.save(target, array)
    folder.write(name, target.getvalue())


# The discrete cosine transform of 8 values.
COSINES = np.cos((2 * np.arange(8) + 1) * np.arange(8)[:, None] * np.pi / 16) / 2
COSINES[0] /= np.sqrt(2)


def photograph(rng):
    """A scene as cameras leave it: neighbouring pixels are alike, and there is little noise."""
    pixels = scene(rng, [look(int(rng.integers(0, 24)), 24)], (128, 128)).astype(float)
    for axis in (0, 0, 0, 0, 1, 1, 1, 1):
        pixels = (pixels + np.roll(pixels, 1, axis)) / 2
    return pixels.round().astype(np.uint8)


def hidden(rng, pixels, quality, share):
    """A JPEG with a message in it: a share of the coefficients of its brightness is larger or smaller by one.

    Without a message (share 0) the picture takes the same way, so that only the message makes the difference.
    """
    options = {"quality": quality, "subsampling": 0}
    cover = Image.open(io.BytesIO(encoded(pixels, **options)))
    steps = np.reshape(cover.quantization[0], (8, 8))
    bands = np.asarray(cover.convert("YCbCr")).copy()
    height, width = bands.shape[0] // 8, bands.shape[1] // 8
    blocks = bands[..., 0].reshape(height, 8, width, 8).swapaxes(1, 2) - 128.0
    levels = np.round(COSINES @ blocks @ COSINES.T / steps)
    message = rng.choice((-1, 1), levels.shape) * (rng.random(levels.shape) < share)
    blocks = COSINES.T @ ((levels + message) * steps) @ COSINES + 128
    bands[..., 0] = np.clip(np.round(blocks), 0, 255).swapaxes(1, 2).reshape(height * 8, width * 8)
    return encoded(np.asarray(Image.fromarray(bands, "YCbCr").convert("RGB")), **options)


@competition("alaska2-image-steganalysis", Rules("share", "weighted_auc", margin=0.1))
def make_alaska(folder):
    """Folders that are classes with the same names in each, and a Test folder that is none. The signal is faint."""
    kinds = {"Cover": 0.0, "JMiPOD": 0.05, "JUNIWARD": 0.06, "UERD": 0.07}
    qualities = (75, 90, 95)
    for n in range(1, folder.count(70, 12) + 1):
        pixels = photograph(folder.rng)
        for kind, share in kinds.items():
            folder.write(f"{kind}/{n:05d}.jpg", hidden(folder.rng, pixels, qualities[n % 3], share))
    answers = []
    for n in range(1, folder.count(120, 40) + 1):
        label = int(folder.rng.integers(0, 2))
        share = kinds[("JMiPOD", "JUNIWARD", "UERD")[n % 3]] if label else 0.0
        folder.write(f"Test/{n:04d}.jpg", hidden(folder.rng, photograph(folder.rng), qualities[n // 3 % 3], share))
        answers.append((f"{n:04d}.jpg", label))
    folder.table("sample_submission.csv", ["Id", "Label"], [(name, 0) for name, _ in answers])
    folder.answers(["Id", "Label"], answers)


def breast(rng, cancer, size):
    """A bright half disc on black with lures in it; with cancer mostly a spiky bright mark, too. From 0 to 1."""
    width, height = size
    canvas = np.zeros((height, width, 3), dtype=np.float32)
    draw(canvas, rng, Look(None, 0, "plain", 0.5), 0.62, (0.25, 0.5))
    tissue = canvas[..., 0] > 0.05
    for _ in range(2):
        draw(
            canvas,
            rng,
            Look(None, 0, "plain", rng.uniform(0.35, 0.65)),
            rng.uniform(0.06, 0.1),
            rng.uniform((0.2, 0.3), (0.5, 0.7)),
        )
    if cancer and rng.random() < 0.85:
        draw(canvas, rng, Look(None, 8, "plain", 1.0), rng.uniform(0.1, 0.14), rng.uniform((0.2, 0.3), (0.45, 0.7)))
    grain = rng.normal(0, 0.02, (height, width)) + 0.05 * smooth(rng, width, height, 9)
    return np.clip(canvas[..., 0] + grain * tissue, 0, 1)


def breast_rows(folder, patients, share):
    """One row per picture of rsna-breast, as train.csv has them. A breast has two or three pictures with one label."""
    rows = []
    names = folder.numbers(patients, 60000)
    sick = [i < round(2 * patients * share) for i in range(2 * patients)]
    sick = iter(folder.shuffled(sick))
    for patient in names:
        site, age = int(folder.rng.integers(1, 3)), int(folder.rng.integers(40, 80))
        for side in "LR":
            cancer = int(next(sick))
            for view in ("CC", "MLO", "MLO")[: int(folder.rng.integers(2, 4))]:
                image, biopsy = int(folder.rng.integers(10**5, 2 * 10**9)), int(cancer or folder.rng.random() < 0.05)
                birads = "" if folder.rng.random() < 0.5 else f"{0 if biopsy else folder.rng.integers(1, 3)}.0"
                density = "" if site == 2 else str(folder.rng.choice(list("ABCD")))
                rows.append(
                    (
                        site,
                        patient,
                        image,
                        side,
                        view,
                        "" if folder.rng.random() < 0.02 else f"{age}.0",
                        cancer,
                        biopsy,
                        int(cancer and folder.rng.random() < 0.7),
                        birads,
                        0,
                        density,
                        (49, 93)[site - 1],
                        bool(birads == "0.0" and not cancer),
                    )
                )
    return rows


@competition("rsna-breast-cancer-detection", Rules("share", "pf1", margin=0.04))
def make_breasts(folder):
    """DICOM of 16 bits, JPEG 2000 or lossless JPEG, MONOCHROME1 and 2. A row of the sample is several pictures."""
    header = [
        "site_id",
        "patient_id",
        "image_id",
        "laterality",
        "view",
        "age",
        "cancer",
        "biopsy",
        "invasive",
        "BIRADS",
        "implant",
        "density",
        "machine_id",
        "difficult_negative_case",
    ]
    parts = {
        "train": breast_rows(folder, folder.count(64, 12), 0.18),
        "test": breast_rows(folder, folder.count(40, 12), 0.18),
    }
    for part, rows in parts.items():
        for row in rows:
            size = (150, 200) if row[0] == 1 else (180, 210)
            samples = breast(folder.rng, row[6], size)
            samples = samples[:, ::-1] if row[3] == "R" else samples
            folder.write(
                f"{part}_images/{row[1]}/{row[2]}.dcm",
                dicom.mammogram(samples, row[0] == 1, row[0] == 1 and row[1] % 2 == 0),
            )
    folder.table("train.csv", header, parts["train"])
    asked = lambda row: f"{row[1]}_{row[3]}"
    folder.table(
        "test.csv",
        [*header[:6], "implant", "machine_id", "prediction_id"],
        [[*row[:6], row[10], row[12], asked(row)] for row in parts["test"]],
    )
    answers = sorted({asked(row): row[6] for row in parts["test"]}.items())
    share = float(np.mean([row[6] for row in parts["train"]]))
    folder.table("sample_submission.csv", ["prediction_id", "cancer"], [(name, share) for name, _ in answers])
    folder.answers(["prediction_id", "cancer"], answers)
