#!/usr/bin/python3
"""The library's meetings against MPI_Barrier of Open MPI, which spins, in turns.

usage: bench/peer_barriers.py [--rounds N] [PATH/TO/bench_barrier]        (apt-get install libopenmpi-dev openmpi-bin)

Two processes on two cores, and eight on two, where Open MPI yields. bench_barrier has the figures of both in each of its runs; the
ratio is of one round each. Run it on an idle machine.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

# Prints the nanoseconds of one of N barriers right behind one another: the median of 21 matches, by the first rank.
MPI = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MATCHES = 21 };

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 100000;
    double ns[MATCHES];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int match = 0; match < MATCHES; match++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double from = MPI_Wtime();
        for (int i = 0; i < n; i++) MPI_Barrier(MPI_COMM_WORLD);
        ns[match] = 1e9 * (MPI_Wtime() - from) / n;
    }
    qsort(ns, MATCHES, sizeof *ns, ascending);
    if (rank == 0) printf("%.1f\n", ns[MATCHES / 2]);
    return MPI_Finalize();
}
"""


def meeting(program):
    """ns of a meeting of two workers, and of eight on two cores."""
    out = subprocess.run([program, "--rounds", "1"], check=True, capture_output=True, text=True).stdout
    return [float(x) for x in re.findall(r"^  meeting +([0-9.]+) ns", out, re.MULTILINE)]


def mpi(program, ranks, barriers):
    argv = ["mpirun", "--allow-run-as-root", "-n", str(ranks)]
    argv += ["--bind-to", "core"] if ranks == 2 else ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    if ranks > 2:
        argv = ["taskset", "-c", "0,1", *argv]
    return float(subprocess.run([*argv, program, str(barriers)], check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1], formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program", nargs="?", default="bench/bench_barrier")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: two at least, for there are no quartiles of one")
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        sys.exit("peer_barriers.py: there is no mpicc or mpirun (Debian: libopenmpi-dev openmpi-bin)")
    if not shutil.which(options.program):
        sys.exit(f"peer_barriers.py: {options.program}: no such program; make {options.program}")
    with tempfile.TemporaryDirectory() as folder:
        peer = os.path.join(folder, "peer_barrier")
        with open(peer + ".c", "w") as f:
            f.write(MPI)
        subprocess.run(["mpicc", "-O2", peer + ".c", "-o", peer], check=True)
        rounds = [(meeting(options.program), mpi(peer, 2, 100000), mpi(peer, 8, 1000)) for _ in range(options.rounds)]
    for i, what in enumerate(("two workers on two cores", "eight workers on two cores")):
        ours, theirs = [r[0][i] for r in rounds], [r[1 + i] for r in rounds]
        ratios = statistics.quantiles((a / b for a, b in zip(ours, theirs)), n=4, method="inclusive")
        print(f"{what}: a meeting {statistics.median(ours):.0f} ns, MPI_Barrier {statistics.median(theirs):.0f} ns; "
              f"{ratios[1]:.2f} [{ratios[0]:.2f} .. {ratios[2]:.2f}] of {options.rounds}", flush=True)


main()
