#!/usr/bin/env python3
"""Two hosts of one worker against one host of two workers, on this machine: what the link between hosts costs.

usage: bench/hosts.py [--pairs N] [--mpi "mpirun --bind-to none" | --with "--wire bf16"] PROGRAM [CASE...]

CASEs: async, ssp, local, mlp, mlp-async, cnn, cnn-async, cnn-local; none named: all.

Each pair is one run of each, one after the other, in turns. Printed is the median of the ratio of their speeds (examples a second of
training; two hosts / one host), with its quartiles. Two hosts share the machine's processors (shmtrain launch --local 2), their links, too.
With --mpi it is two hosts that this launcher starts against the same two hosts by ZeroMQ; with --with two hosts with these options against the
same without, and also what they have sent, and the loss of the last epoch.
"""
import argparse
import json
import statistics
import subprocess

CASES = {  # like RCV1: 200,000 examples of 74 values, 47,236 features
    "async": ["--mode", "async", "-e", "12", "builtin:sparse"],
    "ssp": ["--mode", "ssp:4", "-e", "5", "builtin:sparse"],
    "local": ["--mode", "local:8", "-e", "12", "builtin:sparse"],
    "mlp": ["-M", "mlp", "--mode", "sync", "-e", "5", "builtin:digits"],
    "mlp-async": ["-M", "mlp", "--mode", "async", "-e", "5", "builtin:digits"],
    "cnn": ["-M", "cnn", "--mode", "sync", "--batch", "512", "-e", "1", "builtin:digits:examples=4096,valid=100"],
    "cnn-async": ["-M", "cnn", "--mode", "async", "-e", "1", "builtin:digits:examples=4096,valid=100"],
    "cnn-local": ["-M", "cnn", "--mode", "local:8", "-e", "1", "builtin:digits:examples=4096,valid=100"],
}


def run(words):
    """Examples a second, bytes that host 0 has sent, loss of the last epoch."""
    report = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return report["examples_per_second"], report.get("sent_bytes", 0), report["epochs"][-1]["train_loss"]


def spread(ratios):
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--mpi")
    parser.add_argument("--with", dest="words")
    parser.add_argument("program")
    parser.add_argument("case", nargs="*")
    a = parser.parse_args()
    for name in a.case or CASES:
        words = ["--json", "-q", *CASES[name]]
        two, one = [a.program, "launch", "--local", "2", "--", "-w", "1", *words], [a.program, "-w", "2", *words]
        runs, what = (two, one), "two hosts / one host"
        if a.mpi:
            runs, what = ([*a.mpi.split(), "-n", "2", a.program, "-w", "1", *words], two), "by MPI / by ZeroMQ"
        if a.words:
            runs, what = ([*two, *a.words.split()], two), f"{a.words} / without"
        found = []
        for pair in range(a.pairs):
            both = {which: run(runs[which]) for which in ((0, 1) if pair % 2 else (1, 0))}
            found.append((both[0], both[1]))
        print(f"{name:10} {what}: {spread([x[0] / y[0] for x, y in found])}, {a.pairs} pairs", flush=True)
        if a.words:
            loss = [statistics.median(pair[k][2] for pair in found) for k in (0, 1)]
            print(f"{name:10}   bytes {spread([x[1] / y[1] for x, y in found])}; loss {loss[0]:.4f}, without {loss[1]:.4f}", flush=True)


if __name__ == "__main__":
    main()
