"""Numbers of torch's optimizers and schedules, for tests/test_rules_torch.c. Debian's package is python3-torch; in the source folder:

    python3 tests/rules_torch.py > tests/rules_torch.h

All is computed in double, and printed to nine digits. torch 1.13 has no LAMB: that one is You et al. 2020, Algorithm 2, in NumPy, with
a ratio of at most 10."""
import numpy as np
import torch

STEPS, FLOATS = 24, 4
BEGIN = [0.5, -1.25, 0.0, 2.0]
# Of all sizes and signs, with zeros in between; each a number that a float holds.
GRAD = [[((7 * k * (i + 1) + 3 * i) % 17 - 8) / 8 * [1, 0.125, 4, 1][i] if (k + i) % 5 != 4 else 0.0 for i in range(FLOATS)]
        for k in range(STEPS)]


LAMB_BEGIN = BEGIN + [0.0, 0.25]
LAMB_GRAD = [g + [g[1] - g[3], g[0] / 2] for g in GRAD]


def course(make, clip=None):
    w = torch.tensor(BEGIN, dtype=torch.float64, requires_grad=True)
    optimizer, rows = make([w]), []
    for grad in GRAD:
        w.grad = torch.tensor(grad, dtype=torch.float64)
        if clip: clip([w])
        optimizer.step()
        rows.append(w.tolist())
    return rows


def clipped_by_norm(most):
    w = torch.tensor(BEGIN, dtype=torch.float64, requires_grad=True)
    optimizer, rows = torch.optim.SGD([w], lr=0.1), []
    for grad in GRAD:
        w.grad = torch.tensor(grad, dtype=torch.float64)
        torch.nn.utils.clip_grad_norm_([w], most)
        optimizer.step()
        rows.append(w.tolist())
    return rows


# Two layers of two numbers, then two biases: these have no weight decay and keep the rate, as in NVIDIA's and timm's LAMB.
LAYERS, BIASES = [slice(0, 2), slice(2, 4)], slice(4, 6)


def lamb(lr, b1, b2, eps, decay, clip=None):
    x, rows = np.array(LAMB_BEGIN), []
    m, v = np.zeros_like(x), np.zeros_like(x)
    for t, g in enumerate(np.array(LAMB_GRAD), 1):
        if clip: g = np.clip(g, -clip, clip)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        r = m / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + eps)
        for i in LAYERS:
            u = r[i] + decay * x[i]
            norms = np.linalg.norm(x[i]), np.linalg.norm(u)
            x[i] -= lr * (min(norms[0] / norms[1], 10) if min(norms) > 0 else 1) * u
        x[BIASES] -= lr * r[BIASES]
        rows.append(x.tolist())
    return rows


def rates(make, steps):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    schedule, out = make(optimizer), []
    for k in range(steps):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if k + 1 < steps: schedule.step()
    return out


def row(numbers): return "{" + ", ".join("%.9g" % x for x in numbers) + "}"
def rows(all): return "{" + ", ".join(row(r) for r in all) + "}"


O, C = torch.optim, torch.nn.utils
COURSES = [  # the rule's constants in C, torch's optimizer, torch's clipping
    (".kind = SHMT_RULE_SGD", 0.1, lambda p: O.SGD(p, lr=0.1), None),
    (".kind = SHMT_RULE_SGD, .clip = 0.5f", 0.1, lambda p: O.SGD(p, lr=0.1), lambda p: C.clip_grad_value_(p, 0.5)),
    (".kind = SHMT_RULE_MOMENTUM, .momentum = 0.9f", 0.05, lambda p: O.SGD(p, lr=0.05, momentum=0.9), None),
    (".kind = SHMT_RULE_NESTEROV, .momentum = 0.9f", 0.05, lambda p: O.SGD(p, lr=0.05, momentum=0.9, nesterov=True), None),
    (".kind = SHMT_RULE_NESTEROV, .momentum = 0.5f, .clip = 0.75f", 0.05,
     lambda p: O.SGD(p, lr=0.05, momentum=0.5, nesterov=True), lambda p: C.clip_grad_value_(p, 0.75)),
    (".kind = SHMT_RULE_ADAGRAD, .epsilon = 1e-8f", 0.1, lambda p: O.Adagrad(p, lr=0.1, eps=1e-8), None),
    (".kind = SHMT_RULE_RMSPROP, .rho = 0.99f, .epsilon = 1e-8f", 0.01, lambda p: O.RMSprop(p, lr=0.01), None),
    (".kind = SHMT_RULE_RMSPROP, .rho = 0.75f, .epsilon = 0.125f", 0.1, lambda p: O.RMSprop(p, lr=0.1, alpha=0.75, eps=0.125), None),
    (".kind = SHMT_RULE_ADADELTA, .rho = 0.9f, .epsilon = 1e-6f", 1, lambda p: O.Adadelta(p), None),
    (".kind = SHMT_RULE_ADADELTA, .rho = 0.75f, .epsilon = 0.01f", 0.5, lambda p: O.Adadelta(p, lr=0.5, rho=0.75, eps=0.01), None),
    (".kind = SHMT_RULE_ADAM, .momentum = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f", 0.01, lambda p: O.Adam(p, lr=0.01), None),
    (".kind = SHMT_RULE_ADAMW, .momentum = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .weight_decay = 0.01f", 0.01,
     lambda p: O.AdamW(p, lr=0.01), None),
    (".kind = SHMT_RULE_ADAMW, .momentum = 0.75f, .beta2 = 0.9375f, .epsilon = 1e-3f, .weight_decay = 0.5f, .clip = 1", 0.05,
     lambda p: O.AdamW(p, lr=0.05, betas=(0.75, 0.9375), eps=1e-3, weight_decay=0.5), lambda p: C.clip_grad_value_(p, 1)),
]
LAMBS = [
    (".momentum = 0.9f, .beta2 = 0.999f, .epsilon = 1e-6f, .weight_decay = 0.01f", 0.02, lamb(0.02, 0.9, 0.999, 1e-6, 0.01)),
    (".momentum = 0.75f, .beta2 = 0.9375f, .epsilon = 1e-3f, .weight_decay = 0.5f, .clip = 1", 0.05,
     lamb(0.05, 0.75, 0.9375, 1e-3, 0.5, clip=1)),
    (".momentum = 0.9f, .beta2 = 0.999f, .epsilon = 1e-6f", 0.1, lamb(0.1, 0.9, 0.999, 1e-6, 0)),
]
S = torch.optim.lr_scheduler
SCHEDULES = [  # of 40 steps in 4 epochs, a base of 0.5
    (".kind = SHMT_RATE_STEP, .every = 1.5, .factor = 0.3", lambda o: S.StepLR(o, 15, gamma=0.3)),
    (".kind = SHMT_RATE_COSINE, .epochs = 4", lambda o: S.CosineAnnealingLR(o, 40)),
    (".kind = SHMT_RATE_CONSTANT, .warmup = 0.8", lambda o: S.LambdaLR(o, lambda k: min(1, k / 8))),
]

print("/* Numbers of torch %s, in double. Written by: python3 tests/rules_torch.py > tests/rules_torch.h */" % torch.__version__.split("a")[0])
print("#pragma once\n\n#include \"update/rate.h\"\n#include \"update/rule.h\"\n")
print("enum { TORCH_STEPS = %d, TORCH_FLOATS = %d, TORCH_RATES = 40, TORCH_CYCLE = 60 };\n" % (STEPS, FLOATS))
print("static const float TORCH_BEGIN[TORCH_FLOATS] = %s;" % row(BEGIN).replace("0.5", "0.5f").replace("1.25", "1.25f"))
print("static const double TORCH_GRAD[TORCH_STEPS][TORCH_FLOATS] = %s;\n" % rows(GRAD))
print("/* Weights behind each step. */")
print("static const struct torch_course {\n    struct shmt_rule rule;\n    float rate;\n    double weight[TORCH_STEPS][TORCH_FLOATS];\n} TORCH_COURSES[] = {")
for rule, rate, make, clip in COURSES: print("    {{%s}, (float)%g, %s}," % (rule, rate, rows(course(make, clip))))
print("};\n\n/* SGD at a rate of 0.1, gradients clipped to a norm of 0.5. */")
print("static const double TORCH_BY_NORM[TORCH_STEPS][TORCH_FLOATS] = %s;" % rows(clipped_by_norm(0.5)))
print("\n/* LAMB, by NumPy: two tables of two floats, and one of two biases. */")
print("enum { LAMB_FLOATS = %d };" % len(LAMB_BEGIN))
print("static const float LAMB_BEGIN[LAMB_FLOATS] = %s;" % row(LAMB_BEGIN).replace("0.5", "0.5f").replace("1.25", "1.25f").replace("0.25", "0.25f"))
print("static const double LAMB_GRAD[TORCH_STEPS][LAMB_FLOATS] = %s;" % rows(LAMB_GRAD))
print("static const struct lamb_course {\n    struct shmt_rule rule;\n    float rate;\n    double weight[TORCH_STEPS][LAMB_FLOATS];\n} LAMB_COURSES[] = {")
for rule, rate, numbers in LAMBS: print("    {{.kind = SHMT_RULE_LAMB, %s}, (float)%g, %s}," % (rule, rate, rows(numbers)))
print("};")
print("\n/* 4 epochs of 10 steps from a base of 0.5: the rate of each. */")
print("static const struct torch_schedule {\n    struct shmt_rate rate;\n    double at[TORCH_RATES];\n} TORCH_SCHEDULES[] = {")
for rate, make in SCHEDULES: print("    {{.base = 0.5f, %s}, %s}," % (rate, row(rates(make, 40))))
print("};\n\n/* OneCycleLR: steps 0 .. 17 rise to the top (at 0.3 * 60 - 1), and 59 is the last one. */")
print("static const double TORCH_ONE_CYCLE[TORCH_CYCLE] = %s;" %
      row(rates(lambda o: S.OneCycleLR(o, max_lr=0.5, total_steps=60, cycle_momentum=False), 60)))
