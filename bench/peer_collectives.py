#!/usr/bin/python3
"""Barriers and all-reduces of floats, of bench_collective, of Open MPI, MPICH and gloo, in turns.

usage: bench/peer_collectives.py [--rounds N] [--workers 2,8] [PATH/TO/bench_collective]
       (apt-get install openmpi-bin libopenmpi-dev mpich libmpich-dev libgloo-dev)

Two processes on two cores, and eight on the same two, where Open MPI yields. A peer that is not installed is left out, with a line that
says so. Each figure is the median of all rounds, each round's that of 11 matches; buffers of MPI and gloo are reduced in place, as ours are.
Run it on an idle machine.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SIZES = [8, 1024, 16384, 65536, 1 << 20, 16 << 20, 64 << 20]

COMMON = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { MATCHES = 11 };
static const unsigned long SIZES[] = {8, 1024, 16384, 65536, 1 << 20, 16 << 20, 64 << 20};
static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static unsigned long repeats(unsigned long bytes, int n) {
    const unsigned long most = n > 2 ? 200 : 2000, many = (64ul << 20) / (bytes * (unsigned long)n + 1) + 1;
    return many < most ? many : most;
}
static void report(const char *what, unsigned long bytes, double *ns, int rank) {
    qsort(ns, MATCHES, sizeof *ns, ascending);
    if (rank == 0) printf("%s %lu %.1f\n", what, bytes, ns[MATCHES / 2]);
}
"""

MPI = "#include <mpi.h>\n" + COMMON + r"""
int main(int argc, char **argv) {
    double ns[MATCHES];
    int rank, n;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int m = 0; m < MATCHES; m++) {
        const unsigned long k = repeats(8, n);
        MPI_Barrier(MPI_COMM_WORLD);
        const double from = now_ns();
        for (unsigned long i = 0; i < k; i++) MPI_Barrier(MPI_COMM_WORLD);
        ns[m] = (now_ns() - from) / (double)k;
    }
    report("barrier", 0, ns, rank);
    for (unsigned s = 0; s < sizeof SIZES / sizeof *SIZES; s++) {
        const unsigned long k = repeats(SIZES[s], n);
        float *x = calloc(1, SIZES[s]);
        memset(x, 0, SIZES[s]);
        for (int m = 0; m < MATCHES; m++) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double from = now_ns();
            for (unsigned long i = 0; i < k; i++)
                MPI_Allreduce(MPI_IN_PLACE, x, (int)(SIZES[s] / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            ns[m] = (now_ns() - from) / (double)k;
        }
        report("all-reduce", SIZES[s], ns, rank);
        free(x);
    }
    return MPI_Finalize();
}
"""

GLOO = r"""
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
""" + COMMON + r"""
int main(int argc, char **argv) {
    const int rank = atoi(argv[1]), n = atoi(argv[2]);
    (void)argc;
    gloo::transport::tcp::attr attr;
    attr.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore store(argv[3]);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, n);
    context->connectFullMesh(store, device);
    double ns[MATCHES];
    gloo::BarrierOptions barrier(context);
    for (int m = 0; m < MATCHES; m++) {
        const double from = now_ns();
        for (int i = 0; i < 100; i++) gloo::barrier(barrier);
        ns[m] = (now_ns() - from) / 100;
    }
    report("barrier", 0, ns, rank);
    for (unsigned s = 0; s < sizeof SIZES / sizeof *SIZES; s++) {
        const unsigned long k = (repeats(SIZES[s], n) + 19) / 20;
        float *x = (float *)calloc(1, SIZES[s]);
        memset(x, 0, SIZES[s]);
        gloo::AllreduceOptions o(context);
        o.setOutput(x, SIZES[s] / 4);
        o.setReduceFunction([](void *a, const void *b, const void *c, size_t count) { gloo::sum<float>(a, b, c, count); });
        for (int m = 0; m < MATCHES; m++) {
            gloo::barrier(barrier);
            const double from = now_ns();
            for (unsigned long i = 0; i < k; i++) gloo::allreduce(o);
            ns[m] = (now_ns() - from) / (double)k;
        }
        report("all-reduce", SIZES[s], ns, rank);
        free(x);
    }
    return 0;
}
"""


def lines(text):
    return {(what, int(size)): float(ns) for what, size, ns in re.findall(r"^(\S+) (\d+) ([0-9.]+)$", text, re.MULTILINE)}


def ours(program, workers):
    out = subprocess.run([program, "--rounds", "1"], check=True, capture_output=True, text=True).stdout
    found = {}
    for part in re.split(r"^collectives: ", out, flags=re.MULTILINE)[1:]:
        n, size = map(int, re.match(r"(\d+) workers, (\d+) bytes", part).groups())
        for name, value, unit in re.findall(r"^  (\S.*?)  +([0-9.]+) (ns|us) ", part, re.MULTILINE):
            ns = float(value) * (1000 if unit == "us" else 1)
            if n == workers:
                found[name, 0 if name.startswith("barrier") else size] = ns
    return found


def mpi(kind, program, ranks):
    argv = [f"mpirun.{kind}", "-n", str(ranks)]
    if kind == "openmpi":
        argv += ["--allow-run-as-root"]
        argv += ["--bind-to", "core"] if ranks == 2 else ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    argv = ["taskset", "-c", "0,1", *argv, program]
    return lines(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=500).stdout)


def gloo(program, ranks, folder):
    store = tempfile.mkdtemp(dir=folder)
    argv = ["taskset", "-c", "0,1", program]
    group = [subprocess.Popen([*argv, str(i), str(ranks), store], stdout=subprocess.PIPE, text=True) for i in range(ranks)]
    out = [p.communicate(timeout=500)[0] for p in group]
    if any(p.returncode for p in group):
        raise RuntimeError("gloo failed")
    return lines(out[0])


def build(folder):
    """What is installed, as functions of the number of workers."""
    peers = {}
    for kind in ("openmpi", "mpich"):
        source, program = os.path.join(folder, "mpi.c"), os.path.join(folder, kind)
        with open(source, "w", encoding="ascii") as f:
            f.write(MPI)
        if shutil.which(f"mpicc.{kind}") and shutil.which(f"mpirun.{kind}"):
            subprocess.run([f"mpicc.{kind}", "-O2", source, "-o", program], check=True)
            peers[kind] = lambda n, kind=kind, program=program: mpi(kind, program, n)
        else:
            print(f"{kind}: not installed, left out")
    source, program = os.path.join(folder, "gloo.cc"), os.path.join(folder, "gloo")
    with open(source, "w", encoding="ascii") as f:
        f.write(GLOO)
    if subprocess.run(["g++", "-O2", source, "-o", program, "-lgloo", "-lpthread"], capture_output=True, check=False).returncode == 0:
        peers["gloo"] = lambda n: gloo(program, n, folder)
    else:
        print("gloo: not installed, left out")
    return peers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", default="2,8")
    parser.add_argument("program", nargs="?", default="bench/bench_collective")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        peers = build(folder)
        for n in map(int, args.workers.split(",")):
            table = {}
            for _ in range(args.rounds):
                for (name, size), ns in ours(args.program, n).items():
                    table.setdefault((name, size), []).append(ns)
                for peer, measure in peers.items():
                    for (name, size), ns in measure(n).items():
                        table.setdefault((f"{name}, {peer}", size), []).append(ns)
            for size in [0, *SIZES]:
                print(f"{n} workers, " + (f"all-reduce of {size} bytes" if size else "barrier"))
                for (name, at), ns in table.items():
                    if at == size:
                        print(f"  {name:40} {statistics.median(ns) / 1000:12.3f} us")


if __name__ == "__main__":
    sys.exit(main())
