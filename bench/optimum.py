#!/usr/bin/python3
"""Time to a certified optimum, against LIBLINEAR's solvers at their loosest sufficient tolerance, in turns.

usage: bench/optimum.py [OPTION...] FILE...       (apt-get install liblinear-tools; FILE: LIBSVM text of two labels, may be packed)

  --program PATH    ./shmtrain
  --rounds N        3; the median counts
  --c LIST          0.01,1,100: for logistic and svm with L2, in LIBLINEAR's way
  --l1 LIST         0.001: for logistic with L1 (l1 of the mean loss)
  --models LIST     logistic,svm,l1
  --targets LIST    1e-3,1e-6: how far the objective may be above the optimum, as a part of it
  --most SECONDS    20: what takes longer is not tried any further

The optimum is the lower bound that shmtrain proves at a tolerance of 1e-9, or as near as it comes. LIBLINEAR's -e goes down from 1 until its
objective is near enough: -s 0 and 7 (logistic), 3 (svm), 6 (L1); the fastest one counts. Where none comes near in time, by its own limit of
iterations or by --most, the longest of the fastest solver's runs says how long it takes at least: two means are shown, without these and
with. No bias. Its loading is a run with -e 1e9, ours is what --json says. All files are read from the page cache; models go to /dev/shm.
Run it on an idle machine.
"""
import argparse
import json
import lzma
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

EPSILONS = (1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 1e-5, 1e-6)
SOLVERS = {"logistic": ("0", "7"), "svm": ("3",), "l1": ("6",)}


def run(argv, most=None):
    """Seconds and output; None: it took too long."""
    begun = time.perf_counter()
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=most)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        sys.exit(f"optimum.py: {' '.join(argv)}: {done.stderr.strip()}")
    return time.perf_counter() - begun, done.stdout


class Task:
    """A file, a model, and how much it is regularised."""

    def __init__(self, options, path, model, size):
        self.options, self.path, self.model = options, path, model
        with open(path) as f:
            self.n = sum(1 for _ in f)
        self.c = size if model != "l1" else 1 / (size * self.n)
        self.name = f"{os.path.basename(path)} {'l1' if model == 'l1' else 'C'} = {size:g}"
        self.how = ["--l1", repr(size)] if model == "l1" else ["-M", model, "--C", repr(size)]
        self.file = os.path.join(options.memory, "model")

    def ours(self, tolerance, workers, most=None):
        """Report of a run, and its seconds from start to end."""
        done = run([self.options.program, "-q", "--json", "-w", str(workers), "--bias", "0", "--epochs", "2000", *self.how, "--tolerance",
                    repr(tolerance), "-o", self.file, self.path], most)
        return (json.loads(done[1]), done[0]) if done else None

    def optimum(self):
        report = self.ours(1e-9, 2, 20 * self.options.most)
        return report and report[0]["epochs"][-1]["bound"]

    def peer(self, solver, epsilon):
        done = run(["liblinear-train", "-q", "-s", solver, "-c", repr(self.c), "-e", repr(epsilon), self.path, self.file], self.options.most)
        return done and done[0]

    def peer_objective(self):
        loss = json.loads(run([self.options.program, "eval", "--json", self.file, self.path])[1])["loss"]
        with open(self.file) as f:
            w = [float(x) for x in f.read().split("\nw\n")[1].split()]
        size = sum(map(abs, w)) if self.model == "l1" else sum(x * x for x in w) / 2
        return loss + size / (self.c * self.n)

    def loosest(self, target, optimum):
        """(seconds, solver, epsilon) of the fastest solver that comes near enough, and None; or None, and seconds that are not enough."""
        found, short = [], []
        for solver in SOLVERS[self.model]:
            longest = 0
            for epsilon in EPSILONS:
                seconds = self.peer(solver, epsilon)
                if seconds is None:
                    longest = self.options.most
                    break
                longest = max(longest, seconds)
                if self.peer_objective() <= (1 + target) * optimum:
                    found.append((seconds, solver, epsilon))
                    break
            short.append(longest)
        return (min(found), None) if found else (None, min(short))


def compare(task, target, optimum, ratios):
    best, short = task.loosest(target, optimum)
    peer, load, ours = [], [], {1: [], 2: []}
    proved = True
    for _ in range(task.options.rounds):
        if best:
            peer.append(task.peer(best[1], best[2]) or task.options.most)
            load.append(task.peer(best[1], 1e9) or 0)
        for workers in (1, 2):
            done = task.ours(target, workers, 20 * task.options.most)
            proved = proved and done is not None and done[0]["stopped_by"] == "tolerance"
            if done:
                ours[workers].append((done[1], done[0]["train_seconds"]))
    middle = {w: [statistics.median(x) for x in zip(*times)] or [math.inf] * 2 for w, times in ours.items()}
    text = f"{task.name:<28} {task.model:<8} {target:g}  "
    if best:
        whole, training = statistics.median(peer), max(statistics.median(p - l for p, l in zip(peer, load)), 1e-3)
        for w in (1, 2):
            for what in ("whole", "whole, at least"):
                ratios.setdefault((w, what), []).append(whole / middle[w][0])
            ratios.setdefault((w, "training"), []).append(training / max(middle[w][1], 1e-3))
        text += f"-s {best[1]} -e {best[2]:<6g} {whole:7.3f} ({training:7.3f})"
    else:
        text += f"{f'not in {short:.3f}':<33}"
        for w in (1, 2):
            ratios.setdefault((w, "whole, at least"), []).append(short / middle[w][0])
    text += "".join(f"  -w {w} {middle[w][0]:7.3f} ({middle[w][1]:7.3f})" for w in (1, 2))
    print(text + ("" if proved else "  NOT proved"), flush=True)


def unpacked(path, folder):
    if not path.endswith(".xz"):
        return path
    plain = os.path.join(folder, os.path.basename(path)[:-3])
    with lzma.open(path) as packed, open(plain, "wb") as f:
        f.write(packed.read())
    return plain


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].replace("%", "%%"), formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--program", default="./shmtrain")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--c", default="0.01,1,100")
    parser.add_argument("--l1", default="0.001")
    parser.add_argument("--models", default="logistic,svm,l1")
    parser.add_argument("--targets", default="1e-3,1e-6")
    parser.add_argument("--most", type=float, default=20)
    options = parser.parse_args()
    ratios = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as options.memory:
        print("seconds from start to model (of these, training); LIBLINEAR's best, then shmtrain")
        for path in options.files:
            plain = unpacked(path, options.memory)
            for model in options.models.split(","):
                for size in (options.l1 if model == "l1" else options.c).split(","):
                    task = Task(options, plain, model, float(size))
                    optimum = task.optimum()
                    if not optimum:
                        print(f"{task.name:<28} {model:<8} no optimum is known in time")
                        continue
                    for target in options.targets.split(","):
                        compare(task, float(target), optimum, ratios)
    for (workers, what), values in sorted(ratios.items()):
        print(f"geometric mean of {len(values)}: {what}, -w {workers}: {math.exp(statistics.mean(map(math.log, values))):.2f} times as fast, "
              f"worst {min(values):.2f}")


main()
