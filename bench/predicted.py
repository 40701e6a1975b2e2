#!/usr/bin/python3
"""What fibers predict of two workers, by costs that one worker has (--sim measured), against what two workers do.

usage: bench/predicted.py [OPTION...] DATA [PATH/TO/shmtrain] [-- OPTION-OF-SHMTRAIN...]

  --modes LIST      hogwild,async,ssp:2,sync,backup:1,local:8
  --pairs N         15: of two workers, and two runs of one worker at the same time, in turns; whole threes
  --seconds S       0.7: of each run, about
  --slow TEXT       1:2x: as option slow has it

speed     examples a second of two workers, over those of two runs of one worker that share nothing; the same on fibers, where two runs that share
          nothing are twice one worker's
waiting   what --slow adds to the share of two workers' time that they wait, in percent of their time

Each line has medians: measured, predicted, and how far the prediction is off (speed: in percent of what was measured; waiting: in points).
Three pairs and one prediction, for which costs are measured anew, take turns, and each prediction is compared with its three pairs: so what
drifts from one minute to the next is in both. Beside the speed stand the least and the most of these turns. Run it on an idle machine with two
cores; docs/simulator.md has a table.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys

PAIRS = 3  # to a prediction


class Bench:
    def __init__(self, options):
        self.options = options
        self.cpus = sorted(os.sched_getaffinity(0))[:2]
        if len(self.cpus) < 2:
            sys.exit("predicted.py: two processors are needed")

    def argv(self, mode, workers, epochs, *more):
        return [self.options.program, "-q", "--json", "--mode", mode, "-w", str(workers), "-e", str(epochs), *more,
                *self.options.more, self.options.data]

    def start(self, argv, cpu=None):
        bound = ["taskset", "-c", str(cpu)] if cpu is not None else []
        return subprocess.Popen(bound + argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process):
        out, err = process.communicate()
        if process.returncode != 0:
            sys.exit(f"predicted.py: {' '.join(process.args)}: {err.strip()}")
        return json.loads(out)

    def run(self, *argv):
        return self.end(self.start(self.argv(*argv)))

    def together(self, mode, epochs):
        """Two runs of one worker, each on a processor of its own: their speeds."""
        both = [self.start(self.argv(mode, 1, epochs), cpu) for cpu in self.cpus]
        return [self.end(process)["examples_per_second"] for process in both]

    def epochs(self, mode):
        """So many take about as long as was asked for."""
        report = self.run(mode, 1, 3)
        return max(2, math.ceil(self.options.seconds * 3 / max(report["train_seconds"], 1e-3)))

    def measured(self, mode, epochs):
        """Of three pairs the medians: speed, what --slow adds to waiting, and how much slower the slower processor is."""
        ratios, waits, apart = [], [], []
        for _ in range(PAIRS):
            two, alone = self.run(mode, 2, epochs), self.together(mode, epochs)
            ratios.append(two["examples_per_second"] / sum(alone))
            apart.append(max(alone) / min(alone))
            slow = self.run(mode, 2, epochs, "--slow", self.options.slow)
            waits.append(100 * (slow["wait_fraction"] - two["wait_fraction"]))
        return statistics.median(ratios), statistics.median(waits), statistics.median(apart)

    def predicted(self, mode, seed, apart):
        """The same by fibers, one of which computes `apart` times as long: on other machines all processors are equally fast."""
        fibers = ["--spawn", f"fibers:{seed}", "--sim"]
        one = self.run(mode, 1, 5, *fibers, "measured")
        # One worker has no quorum, and goes another way; else the same costs, so that what drifts between two measurements is in neither.
        straggler = f"straggler=0:{apart:.3f}x"
        costs = "measured" if mode.startswith("backup") else one["sim"]
        two = self.run(mode, 2, 5, *fibers, f"{costs},{straggler}")
        slow = self.run(mode, 2, 5, *fibers, two["sim"], "--slow", self.options.slow)
        speed = two["examples_per_second"] / ((1 + 1 / apart) * one["examples_per_second"])
        return speed, 100 * (slow["wait_fraction"] - two["wait_fraction"])

    def compare(self, mode):
        epochs = self.epochs(mode)
        rounds = []
        for seed in range(1, max(1, self.options.pairs // PAIRS) + 1):
            real = self.measured(mode, epochs)
            told = self.predicted(mode, seed, real[2])
            rounds.append((real[0], told[0], 100 * (told[0] / real[0] - 1), real[1], told[1], told[1] - real[1]))
        speed, told, off, waits, told_waits, waits_off = (statistics.median(values) for values in zip(*rounds))
        least, most = min(r[0] for r in rounds), max(r[0] for r in rounds)
        print(f"| {mode} | {speed:.3f} [{least:.3f} .. {most:.3f}] | {told:.3f} | {off:+.1f} % | {waits:.1f} | {told_waits:.1f} | {waits_off:+.1f} |",
              flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--modes", default="hogwild,async,ssp:2,sync,backup:1,local:8")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.7)
    parser.add_argument("--slow", default="1:2x")
    parser.add_argument("data")
    parser.add_argument("program", nargs="?", default="./shmtrain")
    own = sys.argv[1:]
    more = own[own.index("--") + 1:] if "--" in own else []
    options = parser.parse_args(own[:own.index("--")] if "--" in own else own)
    options.more = more
    bench = Bench(options)
    print("| mode | speed | predicted | off | waiting, % | predicted | off |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for mode in options.modes.split(","):
        bench.compare(mode)


if __name__ == "__main__":
    main()
