#!/usr/bin/env python3
"""Writes tests/unit/optim_golden.h: what torch.optim makes of the numbers that test_cpu_optim.c uses.

    python3 tests/golden/make_optim.py >tests/unit/optim_golden.h      (needs torch)

Parameters and gradients are eighths, exact in every format: element i of all starts as
((5 i) mod 9 - 4) / 8, and its gradient at step s (from 1) is ((7 i + 13 s) mod 11 - 5) / 8.
"""
import torch

# The order of the graph: backbone weight, norm weight, norm bias, classifier weight and bias.
COUNTS = [12, 4, 4, 12, 3]
DECAYS = [True, False, False, True, False]
HEAD = [False, False, False, True, True]
STEPS = 5

CASES = {
    "sgd": dict(kind="sgd", momentum=0.9),
    "nesterov": dict(kind="sgd", momentum=0.9, nesterov=True),
    "sgd_clipped": dict(kind="sgd", momentum=0.5, clip=0.75),
    "adamw": dict(kind="adamw", betas=(0.9, 0.999)),
    "adamw_clipped": dict(kind="adamw", betas=(0.8, 0.99), clip=0.75),
    "adamw_thawed": dict(kind="adamw", betas=(0.9, 0.999), frozen=2),
}
LR, HEAD_LR = 0.05, 0.2
DECAY = {"sgd": 0.125, "adamw": 0.5}


def run(case):
    params, at = [], 0
    for count in COUNTS:
        params.append(torch.tensor([((5 * i) % 9 - 4) / 8 for i in range(at, at + count)],
                                   dtype=torch.float32, requires_grad=True))
        at += count
    groups = [dict(params=[p], lr=HEAD_LR if head else LR,
                   weight_decay=DECAY[case["kind"]] if decay else 0)
              for p, decay, head in zip(params, DECAYS, HEAD)]
    if case["kind"] == "sgd":
        optimizer = torch.optim.SGD(groups, lr=LR, momentum=case["momentum"],
                                    nesterov=case.get("nesterov", False))
    else:
        optimizer = torch.optim.AdamW(groups, lr=LR, betas=case["betas"], eps=1e-8)
    for step in range(1, STEPS + 1):
        at = 0
        for p, head in zip(params, HEAD):
            p.grad = torch.tensor([((7 * i + 13 * step) % 11 - 5) / 8
                                   for i in range(at, at + len(p))], dtype=torch.float32)
            if step <= case.get("frozen", 0) and not head:
                p.grad = None
            at += len(p)
        if "clip" in case:
            torch.nn.utils.clip_grad_norm_(params, case["clip"])
        optimizer.step()
    return torch.cat([p.detach() for p in params])


print("/* optim_golden.h - made by tests/golden/make_optim.py with PyTorch %s. */"
      % torch.__version__.split("+")[0])
print("#ifndef STK_TESTS_OPTIM_GOLDEN_H\n#define STK_TESTS_OPTIM_GOLDEN_H\n")
for name, case in CASES.items():
    numbers = ["%.9gf" % x if "." in "%.9g" % x or "e" in "%.9g" % x else "%.9g.0f" % x
               for x in run(case).tolist()]
    print("static const float golden_%s[%d] = {" % (name, sum(COUNTS)))
    for i in range(0, len(numbers), 5):
        print("    " + ", ".join(numbers[i:i + 5]) + ",")
    print("};\n")
print("#endif")
