#!/usr/bin/python3
"""What networks reach by defaults alone, in every mode: accuracies on test images, as a table.

usage: bench/digits.py [OPTION...] TRAIN TEST [PATH/TO/shmtrain]

  --models LIST     of mlp and cnn; both unless said otherwise
  --modes LIST      async,sync,ssp:2,backup,local:8
  --workers LIST    2,8
  --epochs N        12
  --seeds N         1: with more, the least of N accuracies

TRAIN and TEST are images that shmtrain reads, such as mnist/train-images-idx3-ubyte.gz and mnist/t10k-images-idx3-ubyte.gz. No other option is
set than the model, the mode, the workers, the epochs and the seed. With two cores all of it takes about two hours; docs/networks.md has the table.
"""
import argparse
import json
import subprocess
import sys


def accuracy(options, model, mode, workers, seed):
    """Of the last epoch, in percent."""
    argv = [options.program, "-q", "--json", "-M", model, "--mode", mode, "-w", workers, "-e", str(options.epochs), "--seed", str(seed),
            options.train, "--valid", options.test]
    run = subprocess.run(argv, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"digits.py: {' '.join(argv)}: {run.stderr.strip()}")
    return 100 * json.loads(run.stdout)["epochs"][-1]["valid_accuracy"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--models", default="mlp,cnn")
    parser.add_argument("--modes", default="async,sync,ssp:2,backup,local:8")
    parser.add_argument("--workers", default="2,8")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("program", nargs="?", default="./shmtrain")
    options = parser.parse_args()
    columns = [(model, workers) for model in options.models.split(",") for workers in options.workers.split(",")]
    print("| mode | " + " | ".join(f"{model}, -w {workers}" for model, workers in columns) + " |")
    print("| --- |" + " --- |" * len(columns))
    for mode in options.modes.split(","):
        print(f"| {mode} |", end="", flush=True)
        for model, workers in columns:
            least = min(accuracy(options, model, mode, workers, seed) for seed in range(1, options.seeds + 1))
            print(f" {least:.2f} |", end="", flush=True)
        print()


if __name__ == "__main__":
    main()
