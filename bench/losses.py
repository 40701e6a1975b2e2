#!/usr/bin/env python3
"""What several workers cost in validation loss, epoch by epoch, against one worker with the same seed.

usage: bench/losses.py [--seeds N] [--workers 2,8] [--epochs N] [PATH/TO/shmtrain] [-- OPTION... DATA]

An early epoch of one worker swings by several percent from seed to seed, so a single run says little. For each number of workers
this prints the mean over the seeds of (loss - loss of one worker) / loss of one worker, with its standard error. DATA is
builtin:sparse unless said otherwise (there the seed draws the examples, too), OPTIONs are shmtrain's own.
"""
import argparse
import json
import statistics
import subprocess
import sys


def losses(program, workers, seed, epochs, rest):
    run = [program, "-q", "--json", "-w", str(workers), "-e", str(epochs), "--seed", str(seed), *rest]
    out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    return [epoch["valid_loss"] for epoch in json.loads(out)["epochs"]]


def excess(several, one):
    """Percent by which each epoch's loss is above that of one worker: (seeds, epochs)."""
    return [[100 * (a / b - 1) for a, b in zip(s, o)] for s, o in zip(several, one)]


def main():
    own = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    rest = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else ["builtin:sparse"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", default="./shmtrain")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--workers", default="2,8")
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args(own)
    if options.seeds < 2:
        parser.error("--seeds: two at least, for there is no error of one")
    seeds = range(1, options.seeds + 1)
    run = lambda workers: [losses(options.program, workers, seed, options.epochs, rest) for seed in seeds]
    one = run(1)
    print(f"losses: {' '.join(rest)}, {options.seeds} seeds, percent above one worker's, with the standard error of the mean")
    print("  workers   after epoch 1, 2, 3 ...")
    for workers in options.workers.split(","):
        cells = []
        for column in zip(*excess(run(int(workers)), one)):
            error = statistics.stdev(column) / len(column) ** 0.5
            cells.append(f"{statistics.mean(column):+.2f} ({error:.2f})")
        print(f"  {workers:>7}   " + "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
