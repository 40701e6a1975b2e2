#!/usr/bin/env python3
"""Two hosts of one worker against one host of two workers, on this machine: what the link between hosts costs.

usage: bench/hosts.py [--pairs N] [--mpi "mpirun --bind-to none"] PROGRAM [CASE...]

CASEs: async, local, cnn, cnn-async, cnn-local; none named: all.

Each pair is one run of each, one after the other, in turns. Printed is the median of the ratio of their speeds (examples a second of
training; two hosts / one host), with its quartiles. Two hosts share the machine's processors (shmtrain launch --local 2), their links, too.
With --mpi it is two hosts that this launcher starts against the same two hosts by ZeroMQ.
"""
import argparse
import json
import statistics
import subprocess

CASES = {  # like RCV1: 200,000 examples of 74 values, 47,236 features
    "async": ["--mode", "async", "-e", "12", "builtin:sparse"],
    "local": ["--mode", "local:8", "-e", "12", "builtin:sparse"],
    "cnn": ["-M", "cnn", "--mode", "sync", "--batch", "512", "-e", "1", "builtin:digits:examples=4096,valid=100"],
    "cnn-async": ["-M", "cnn", "--mode", "async", "-e", "1", "builtin:digits:examples=4096,valid=100"],
    "cnn-local": ["-M", "cnn", "--mode", "local:8", "-e", "1", "builtin:digits:examples=4096,valid=100"],
}


def speed(words):
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return json.loads(out)["examples_per_second"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--mpi")
    parser.add_argument("program")
    parser.add_argument("case", nargs="*")
    a = parser.parse_args()
    for name in a.case or CASES:
        words = ["--json", "-q", *CASES[name]]
        ratios = []
        two, one = [a.program, "launch", "--local", "2", "--", "-w", "1", *words], [a.program, "-w", "2", *words]
        runs = (two, one) if not a.mpi else ([*a.mpi.split(), "-n", "2", a.program, "-w", "1", *words], two)
        for pair in range(a.pairs):
            found = {which: speed(runs[which]) for which in ((0, 1) if pair % 2 else (1, 0))}
            ratios.append(found[0] / found[1])
        low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        what = "by MPI / by ZeroMQ" if a.mpi else "two hosts / one host"
        print(f"{name:10} {what}: {middle:.2f} ({low:.2f} to {high:.2f}), {a.pairs} pairs", flush=True)


if __name__ == "__main__":
    main()
