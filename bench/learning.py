#!/usr/bin/env python3
"""How well runs learn that nobody has tuned: held-out losses of the defaults, beside the best that a grid would have found.

usage: bench/learning.py [--program SHMTRAIN] [--workers N] [--seeds N] [--regression NAME,...] FOLDER [-- OPTIONS...]

FOLDER has pairs of files NAME.train and NAME.test, each also with .xz, .gz or .zst behind it, as LIBSVM text. A set is trained on its
first part alone, with OPTIONS, and the saved model is scored on the second one. Two labels are two classes, more are several; sets whose
labels are numbers are named.

The grid is certified fits with n l2 = 10^3 ... 10^-3, of features as they are and of scaled ones: the best of them on the second part,
which nobody can know beforehand. Prints the loss (linear: root mean square error), the ratio to that, and the time by that of the fastest such
fit. docs/learning.md has figures."""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def call(command):
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip() or f"exit {run.returncode}")
    return run.stdout


class Bench:
    def __init__(self, arguments, folder):
        self.program, self.workers, self.seeds = arguments.program, str(arguments.workers), arguments.seeds
        self.regression = arguments.regression.split(",")
        self.model = str(pathlib.Path(folder) / "model")

    def model_of(self, name, train):
        if name in self.regression:
            return "linear"
        info = json.loads(call([self.program, "data", "info", "--json", train]))
        return "logistic" if len(info.get("labels") or []) == 2 else "softmax"

    def loss(self, model, train, test, options):
        """Held-out loss, and seconds of the run."""
        began = time.monotonic()
        call([self.program, "-q", "-w", self.workers, "-M", model, *options, "-o", self.model, train])
        seconds = time.monotonic() - began
        report = json.loads(call([self.program, "eval", "--json", self.model, test]))
        return report["root_mean_square_error" if model == "linear" else "loss"], seconds

    def best(self, model, train, test, n):
        found = []
        for scale in ("no", "yes"):
            for strength in range(7):
                l2 = repr(10.0 ** (3 - strength) / n)
                found.append(self.loss(model, train, test, ["--tolerance", "1e-4", "--epochs", "200", "--scale", scale, "--l2", l2]))
        return min(found)[0], min(of[1] for of in found)

    def line(self, name, train, test, options):
        model = self.model_of(name, train)
        n = json.loads(call([self.program, "data", "info", "--json", train]))["examples"]
        runs = [self.loss(model, train, test, [*options, "--seed", str(seed)]) for seed in range(1, self.seeds + 1)]
        loss, seconds = statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)
        best, of_fit = self.best(model, train, test, n)
        print(f"{name:16s} {model:9s} {loss:10.5g} {best:10.5g} {loss / best:8.3f} {seconds:8.3f} {seconds / of_fit:8.1f}", flush=True)
        return loss / best


def pairs(folder):
    for train in sorted(pathlib.Path(folder).glob("*.train*")):
        test = train.with_name(train.name.replace(".train", ".test"))
        if test.exists():
            yield train.name.split(".train")[0], str(train), str(test)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="./shmtrain")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--regression", default="")
    parser.add_argument("folder")
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    sets = list(pairs(arguments.folder))
    if not sets:
        sys.exit(f"{arguments.folder}: no NAME.train with its NAME.test")
    print(f"{'set':16s} {'model':9s} {'loss':>10s} {'best':>10s} {'ratio':>8s} {'seconds':>8s} {'fits':>8s}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, folder)
        ratios = [bench.line(*of, arguments.options) for of in sets]
    print(f"geometric mean of the ratios {math.exp(statistics.fmean(map(math.log, ratios))):.3f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
