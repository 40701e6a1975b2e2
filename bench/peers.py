#!/usr/bin/python3
"""shmtrain against LIBLINEAR and scikit-learn as Debian packages them, on the same files, in turns, as ratios.

usage: bench/peers.py [OPTION...] [PATH/TO/shmtrain]        (apt-get install liblinear-tools python3-sklearn)

  --parts LIST      of loading, training, memory and epochs; all unless said otherwise
  --data FOLDER     where made examples are kept, and looked for (a temporary folder)
  --a9a FILE        a9a, beside a9a.t; else looked for in $SHMTRAIN_DATA_DIR
  --examples LIST   how many made examples: 20000,677000. The last is what loading and memory are measured on
  --rounds N        15; for more than 100,000 examples a third of it
  --pause SECONDS   between two runs, for others on the machine (0)

loading   a run of one work item, from start to end, against liblinear-train that stops at its first gradient (-e 1e9), and
          loading by itself in MB/s of text; from a cache (shmtrain data convert) against reading that file once by read(2), by
          as many processes as there are workers, each a part
training  from the start of the program to a saved model, and of that training alone, with one worker beside the programs that have one
          thread. Who takes part comes within 0.1 % of the least objective: liblinear-train and scikit-learn by the loosest tolerance
          that does, and the solver that is the fastest then; shmtrain by its proof, or by ten epochs of SGD
memory    of all processes of a run together (Pss), by the number of workers
epochs    an epoch of scikit-learn's SGDClassifier against one of ours (bench/peer_epochs.py)

All read from the page cache, and save models to memory (/dev/shm), for shmtrain alone would wait until a disk has them.
Run it on an idle machine; docs/performance.md has figures, and how to read them.
"""
import argparse
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time

import peer_data
import peer_programs as programs

WITHIN = 1.001  # of the least objective
TOLERANCES = (1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 1e-4)
SOLVERS = {"liblinear-train": ("0", "7"), "scikit-learn": ("lbfgs", "newton-cg", "liblinear", "newton-cholesky")}
MOST_COLUMNS = 5000  # for Newton's method with a matrix in memory


def quartiles(values):
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3


def figure(name, values, unit):
    q = quartiles(values)
    print(f"  {name:<58} {q[1]:9.3f} {unit:<11} [{q[0]:.3f} .. {q[2]:.3f}] of {len(values)}", flush=True)


class Bench:
    def __init__(self, options, folder, memory):
        self.options, self.folder, self.memory_folder = options, folder, memory
        self.ours = programs.Shmtrain(options.program)

    def path(self, name):
        return os.path.join(self.folder if name == "cache" else self.memory_folder, name)

    def rounds(self, data):
        return max(1, self.options.rounds // 3 if data.examples > 100000 else self.options.rounds)

    def timed(self, call, *arguments):
        """The second of two runs counts: hosts of virtual machines take free memory back, and the first pays for getting it."""
        time.sleep(self.options.pause)
        call(*arguments)
        return call(*arguments)

    # ---- loading ----

    def loading(self, data):
        cache, size = self.path("cache"), data.megabytes
        self.ours.convert(data, cache)
        peer, text, mapped, floor = [], {1: [], 2: []}, {1: [], 2: []}, {1: [], 2: []}
        for _ in range(self.rounds(data)):
            if programs.has_liblinear():
                peer.append(self.timed(programs.liblinear, data, self.path("model"), 1e9))
            for workers in (1, 2):
                text[workers].append(self.timed(self.ours.load, data, workers))
                mapped[workers].append(self.timed(self.ours.load, data, workers, cache))
                floor[workers].append(self.timed(programs.read_once, cache, workers))
        print(f"loading {data.name} ({size:.0f} MB of text, a cache of {os.path.getsize(cache) / 1e6:.0f} MB)")
        for workers in (1, 2):
            figure(f"text, -w {workers}, for each worker", [size / run[1] / workers for run in text[workers]], "MB/s")
        if peer:
            figure("liblinear-train, stopped at its first gradient", [size / run for run in peer], "MB/s")
            for workers in (1, 2):
                ratios = [p / run[0] for p, run in zip(peer, text[workers])]
                figure(f"its time, of a whole run with -w {workers}", ratios, "x")
        for workers in (1, 2):
            floors, runs = floor[workers], mapped[workers]
            figure(f"reading the cache's file by read(2), {workers} at once", [os.path.getsize(cache) / 1e6 / f for f in floors], "MB/s")
            figure(f"loading and checking it, -w {workers}, of that", [run[2] / f for run, f in zip(runs, floors)], "x")
            figure("  and all else until it trains", [1000 * (run[1] - run[2]) for run in runs], "ms")
        if peer:
            ratios = [p / run[0] for p, run in zip(peer, mapped[2])]
            figure("liblinear-train's time, of a whole run from it, -w 2", ratios, "x")
        os.unlink(cache)

    # ---- training ----

    def objective(self, model, data):
        return self.ours.objective(model, data.train, data.examples)

    def optimum(self, data):
        """The least objective that any of them finds."""
        model = self.path("optimum")
        programs.liblinear(data, model, 1e-7)
        least = self.objective(model, data)
        self.ours.fit(data, model, 2, 1e-8)
        return min(least, self.objective(model, data))

    def loosest(self, name, data, run, optimum):
        """(solver, tolerance) of the fastest that come near enough, each by its loosest tolerance; None: none does."""
        found = []
        for solver in SOLVERS[name]:
            if solver == "newton-cholesky" and data.columns > MOST_COLUMNS:
                continue
            for tolerance in TOLERANCES:
                seconds = run(data, self.path("model"), tolerance, solver)
                if self.objective(self.path("model"), data) <= WITHIN * optimum:
                    found.append((seconds, solver, tolerance))
                    break
        return min(found)[1:] if found else None

    def liblinear(self, data, model, epsilon, solver):
        """Seconds, and those beyond a run that stops at its first gradient."""
        whole = programs.liblinear(data, model, epsilon, solver)
        loading = programs.liblinear(data, self.path("none"), 1e9)
        return whole, max(whole - loading, 0.0)

    def contestants(self, data, optimum):
        """Names, and what they call with a file for the model."""
        runs = {}
        peers = [("liblinear-train", self.liblinear)] + [("scikit-learn", programs.sklearn)] * programs.has_sklearn()
        for name, run in peers:
            best = self.loosest(name, data, lambda *a, run=run: run(*a)[0], optimum)
            if best:
                solver, tolerance = best
                runs[f"{name}, {solver}, tolerance {tolerance:g}"] = lambda m, s=solver, t=tolerance, run=run: run(data, m, t, s)
            else:
                print(f"  {name} does not come within 0.1 % of the optimum")
        for workers in (1, 2):
            runs[f"shmtrain -w {workers}, proved"] = lambda m, w=workers: self.ours.fit(data, m, w, 1e-3)
        for workers in (1, 2):
            runs[f"shmtrain -w {workers}, 10 epochs of async"] = lambda m, w=workers: self.ours.train(data, m, w)
        return runs

    def training(self, data):
        if not programs.has_liblinear():
            return print("training: skipped, there is no liblinear-train (Debian: liblinear-tools)")
        optimum = self.optimum(data)
        print(f"training on {data.name}, {data.megabytes:.1f} MB; the least objective is {optimum:.7f}")
        runs, model = self.contestants(data, optimum), self.path("model")
        times, excess = {name: [] for name in runs}, {}
        for _ in range(self.rounds(data)):
            for name, run in runs.items():
                times[name].append(self.timed(run, model))
                excess.setdefault(name, []).append(100 * (self.objective(model, data) / optimum - 1))
        peer = next(iter(times.values()))
        for name, seconds in times.items():
            print(f" {name}: objective {statistics.median(excess[name]):+.3f} % above it, at most {max(excess[name]):+.3f}")
            for i, what in enumerate(("from start to model", "training alone")):
                figure(what, [t[i] for t in seconds], "s")
                if seconds is not peer:
                    figure("  the first one's time, of that", [p[i] / t[i] for p, t in zip(peer, seconds)], "x")

    # ---- memory ----

    def memory(self, data):
        cache, mib = self.path("cache"), 1024 * 1024
        self.ours.convert(data, cache)
        print(f"memory of a run on {data.name}, of all its processes together")
        for name, path in (("text", data.train), ("cache", cache)):
            one = 0
            for workers in (1, 2, 8):
                total, parameters = self.ours.memory(path, workers)
                one = one or total
                print(f"  {name}, -w {workers:<48} {total / mib:9.1f} MiB         {total / one:.4f} of -w 1; "
                      f"the parameters are {parameters / mib:.2f} MiB", flush=True)
        if programs.has_liblinear():
            most = programs.liblinear_memory(data, self.path("model"))
            print(f"  {'liblinear-train, at most':<58} {most / mib:9.1f} MiB", flush=True)
        os.unlink(cache)


def data_sets(options, folder):
    sets, a9a = [], options.a9a or os.path.join(os.environ.get("SHMTRAIN_DATA_DIR", "."), "a9a")
    if os.path.exists(a9a) and os.path.exists(a9a + ".t"):
        sets.append(peer_data.DataSet("a9a", a9a, a9a + ".t"))
    else:
        print(f"a9a: skipped, there is no {a9a} with {a9a}.t beside it (LIBSVM's data sets, Adult)")
    try:
        return sets + [peer_data.made(int(n), options.data or folder) for n in options.examples.split(",")]
    except ImportError as missing:
        print(f"made examples: skipped, {missing}; apt-get install python3-sklearn")
        return sets


def stop(number, _frame):
    """Ended like this, temporary folders go, which are memory."""
    sys.exit(128 + number)


def main():
    signal.signal(signal.SIGTERM, stop)
    usage = __doc__.split("usage: ")[1].replace("%", "%%")
    parser = argparse.ArgumentParser(usage=usage, add_help=False, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("-h", "--help", action="version", version=__doc__)
    parser.add_argument("program", nargs="?", default="./shmtrain")
    parser.add_argument("--parts", default="loading,training,memory,epochs")
    parser.add_argument("--data")
    parser.add_argument("--a9a")
    parser.add_argument("--examples", default="20000,677000")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--pause", type=float, default=0)
    options = parser.parse_args()
    if not shutil.which(options.program):
        parser.error(f"{options.program}: no such program")
    shm = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=shm) as memory:
        bench, parts = Bench(options, folder, memory), options.parts.split(",")
        sets = data_sets(options, folder) if set(parts) - {"epochs"} else []
        for part in parts:
            if part == "epochs":
                import peer_epochs  # ends with a word where scikit-learn is missing

                peer_epochs.compare(options.program, min(options.rounds, 9), options.pause)
            elif part == "training":
                for data in sets:
                    bench.training(data)
            elif sets:
                getattr(bench, part)(sets[-1])


if __name__ == "__main__":
    main()
