#!/usr/bin/env python3
"""Writes tests/unit/loss_golden.h: losses and their gradients for a few logits and targets.

    python3 tests/golden/make_losses.py >tests/unit/loss_golden.h

The formulas are those of torch.nn.BCEWithLogitsLoss (pos_weight), MSELoss / 2, L1Loss and HuberLoss, of
torchvision.ops.sigmoid_focal_loss without alpha (for targets of 0 and 1) and of the asymmetric loss of
Ridnik et al. 2021, each with reduction="sum", computed with a hundred digits. Gradients are differences.
"""
from decimal import Decimal, getcontext

getcontext().prec = 100
D = Decimal
H = D("1e-30")

LOGITS = ["0", "0.5", "-1.25", "3", "-8", "100", "-100", "100", "-100", "10000", "-10000", "2"]
TARGETS = ["1", "0", "0.25", "1", "1", "1", "0", "0", "1", "0", "1", "nan"]
WEIGHTS = ["1", "2", "0.5", "3", "1", "1", "4", "1", "2", "1", "1", "7"]

# kind, delta, gamma_pos, gamma_neg, margin, weighted, smoothing
CASES = [
    ("SIGMOID", "0", "0", "0", "0", 0, "0"),
    ("SIGMOID", "0", "0", "0", "0", 1, "0"),
    ("SIGMOID", "0", "0", "0", "0", 1, "0.125"),
    ("SIGMOID", "0", "2", "2", "0", 0, "0"),
    ("SIGMOID", "0", "0", "4", "0.0625", 0, "0"),
    ("SIGMOID", "0", "1", "0.5", "0.25", 1, "0.25"),
    ("SIGMOID", "0", "0", "0", "0.5", 0, "0"),
    ("SQUARED", "0", "0", "0", "0", 0, "0.125"),
    ("ABSOLUTE", "0", "0", "0", "0", 0, "0"),
    ("HUBER", "1", "0", "0", "0", 0, "0"),
    ("HUBER", "0.25", "0", "0", "0", 0, "0"),
]


def power(base, exponent):
    return D(1) if exponent == 0 else D(0) if base == 0 else (base.ln() * exponent).exp()


def point(case, x, t, weight):
    kind, delta, gamma_pos, gamma_neg, margin = case[0], *map(D, case[1:5])
    d = abs(x - t)
    if kind == "SQUARED":
        return d * d / 2
    if kind == "ABSOLUTE":
        return d
    if kind == "HUBER":
        return d * d / 2 if d <= delta else delta * (d - delta / 2)
    p = 1 / (1 + (-x).exp())
    q = 1 / (1 + x.exp())
    minus_log_p = (1 + (-x).exp()).ln()
    if margin == 0:
        none = power(p, gamma_neg) * (1 + x.exp()).ln()
    else:
        m = max(p - margin, D(0))
        none = power(m, gamma_neg) * -(1 - m).ln()
    return weight * t * power(q, gamma_pos) * minus_log_p + (1 - t) * none


def run(case):
    smoothing = D(case[6]) if case[0] == "SIGMOID" else D(0)
    losses, gradients = [], []
    for x, t, w in zip(LOGITS, TARGETS, WEIGHTS):
        if t == "nan":
            losses.append(D(0))
            gradients.append(D(0))
            continue
        x, t, w = D(x), D(t) * (1 - smoothing) + smoothing / 2, D(w) if case[5] else D(1)
        losses.append(point(case, x, t, w))
        gradients.append((point(case, x + H, t, w) - point(case, x - H, t, w)) / (2 * H))
    return losses, gradients


def row(numbers):
    return "{" + ", ".join("NAN" if n == "nan" else f"{float(n):.9g}" for n in numbers) + "}"


print("""/*
 * loss_golden.h - losses and gradients computed with a hundred digits. Written by
 * tests/golden/make_losses.py; do not edit.
 */
#ifndef STK_TESTS_UNIT_LOSS_GOLDEN_H
#define STK_TESTS_UNIT_LOSS_GOLDEN_H

#include <math.h>

#include "engine/loss.h"

/* clang-format off */
""")
print(f"#define GOLDEN_OUTPUTS {len(LOGITS)}\n")
for name, values in (("logits", LOGITS), ("targets", TARGETS), ("weights", WEIGHTS)):
    print(f"static const float golden_{name}[GOLDEN_OUTPUTS] = {row(values)};")
print("""
typedef struct golden_loss {
    stk_loss loss;
    float smoothing;
    double losses[GOLDEN_OUTPUTS]; /* of each output */
    double gradients[GOLDEN_OUTPUTS];
} golden_loss;

static const golden_loss golden_losses[] = {""")
for case in CASES:
    losses, gradients = run(case)
    numbers = [float(n) for n in case[1:5]]
    weights = "golden_weights" if case[5] else "0"
    print(f"    {{{{STK_LOSS_{case[0]}, {numbers[0]:.9g}, {numbers[1]:.9g}, {numbers[2]:.9g}, "
          f"{numbers[3]:.9g}, {weights}}}, {float(case[6]):.9g},")
    print(f"     {row(losses)},")
    print(f"     {row(gradients)}}},")
print("""};

/* clang-format on */

#endif""")
