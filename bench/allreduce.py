#!/usr/bin/python3
"""What equal copies of the parameters cost beside one that all update together: examples a second in mode allreduce over those in mode
sync, in turns, the same data and options.

bench/allreduce.py [--pairs N] [PATH/TO/shmtrain] [-- OPTION-OF-SHMTRAIN... DATA]

  --pairs N    15; each line has their median, least and most

Without data of one's own: generated digits and rows, in the cases below. Both modes must end with the same bits, or it fails. Run it on an
idle machine. docs/performance.md has a table.
"""
import argparse
import json
import statistics
import subprocess
import sys

CASES = {
    "mlp, batches of 128": "-M mlp -e 4 builtin:digits:examples=20000",
    "mlp, batches of 512": "-M mlp -b 512 -e 4 builtin:digits:examples=20000",
    "mlp 784-1024-1024-10": "-M mlp --layers 784-1024-1024-10 -e 2 builtin:digits:examples=8000",
    "cnn": "-M cnn -e 2 builtin:digits:examples=2000",
    "softmax": "-M softmax --optimizer sgd -e 8 builtin:dense:examples=20000",
    "logistic, 47,236 features, batches of 64": "-b 64 -e 6 builtin:sparse:examples=60000",
    "logistic, 100,000 features, batches of 4,096": "-b 4096 -e 6 builtin:sparse:examples=60000,features=100000,nonzeros=30",
}


def speed_and_bits(program, mode, words):
    """Examples a second, and the sum of the parameters; the first epoch maps memory and does not count."""
    done = subprocess.run([program, "-q", "--json", "-w", "2", *words, "--mode", mode], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"allreduce.py: {done.stderr.strip()}")
    report = json.loads(done.stdout)
    epochs = report["epochs"][1:] or report["epochs"]
    return sum(e["examples"] for e in epochs) / sum(e["seconds"] for e in epochs), report["parameters_xxh64"]


def compare(program, name, words, pairs):
    ratios = []
    for pair in range(pairs):
        modes = ("sync", "allreduce") if pair % 2 else ("allreduce", "sync")
        speed, bits = {}, {}
        for mode in modes:
            speed[mode], bits[mode] = speed_and_bits(program, mode, words)
        if bits["sync"] != bits["allreduce"]:
            sys.exit(f"allreduce.py: {name}: the parameters differ: {bits}")
        ratios.append(speed["allreduce"] / speed["sync"])
    print(f"{name:46} {statistics.median(ratios):5.2f}  ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


def main():
    own = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("program", nargs="?", default="./shmtrain")
    options = parser.parse_args(sys.argv[1:own])
    cases = {"": " ".join(sys.argv[own + 1:])} if sys.argv[own + 1:] else CASES
    for name, words in cases.items():
        compare(options.program, name, words.split(), options.pairs)


if __name__ == "__main__":
    main()
