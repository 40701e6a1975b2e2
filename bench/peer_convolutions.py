#!/usr/bin/python3
"""Whether oneDNN would make networks faster: its convolutions against shmtrain's, and all of a network's work, one thread each.

usage: bench/peer_convolutions.py [--rounds N] [--seconds X] [PATH/TO/shmtrain]        (apt-get install python3-torch)

The two convolutions of `cnn`, forward and backward, by oneDNN as PyTorch calls it, in 32-bit floats and in bfloat16, of 128 images laid out
as it likes best (channels last), in memory that is not given back; against training a network of these convolutions and a mean of each
channel with one worker (sync), loss and update included, and all of `cnn`; in turns.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

KEPT = {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 28)}
BATCH = 128
OURS = "conv:32:3 conv:64:3 pool:24:mean flatten fc:10"
SHAPES = ((1, 32, 28), (32, 64, 26))  # channels, filters, side; kernels of 3 x 3


def convolve(dtype, seconds):
    """Images in a second."""
    import torch
    torch.set_num_threads(1)
    layers = []
    for channels, filters, side in SHAPES:
        layers.append([torch.rand(shape).to(dtype).contiguous(memory_format=torch.channels_last) for shape in
                       ((BATCH, channels, side, side), (filters, channels, 3, 3), (BATCH, filters, side - 2, side - 2))])
    bias = [torch.rand(filters).to(dtype) for _, filters, _ in SHAPES]

    def step():
        for k, (x, weight, slope) in enumerate(layers):
            torch.conv2d(x, weight, bias[k])
            torch.ops.aten.convolution_backward(slope, x, weight, [SHAPES[k][1]], [1, 1], [0, 0], [1, 1], False, [0, 0], 1,
                                                [k > 0, True, True])  # nobody needs the gradient of images

    with torch.no_grad():
        for _ in range(3):
            step()
        begun, steps = time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            step()
            steps += 1
    return steps * BATCH / (time.perf_counter() - begun)


def by_onednn(dtype, options):
    argv = [sys.executable, __file__, "--convolve", dtype, str(options.seconds)]
    return float(peer_networks.output_of(
        subprocess.Popen(argv, env={**os.environ, **KEPT}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), argv))


def by_shmtrain(bench, *network):
    argv = bench.argv("cnn", 1)
    argv[argv.index("cnn")] = network[0]
    argv += network[1:]
    return bench.speed_of(peer_networks.output_of(peer_networks.started(argv), argv))


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("program", nargs="?", default="./shmtrain")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = peer_networks.Bench(options, folder)
        columns = {"oneDNN's convolutions, float32": lambda: by_onednn("float32", options),
                   "oneDNN's convolutions, bfloat16": lambda: by_onednn("bfloat16", options),
                   "shmtrain's convolutions": lambda: by_shmtrain(bench, "net", "--net", OURS),
                   "shmtrain's cnn, all of it": lambda: by_shmtrain(bench, "cnn")}
        found = {name: [] for name in columns}
        for _ in range(options.rounds):
            for name, call in columns.items():
                found[name].append(call())
    print(f"images/s, medians of {options.rounds} rounds")
    for name, speeds in found.items():
        ratio = statistics.median(a / b for a, b in zip(speeds, found["shmtrain's convolutions"]))
        print(f"  {name:<46} {statistics.median(speeds):11.0f}   {ratio:.3f} of shmtrain's convolutions")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--convolve"]:
        import torch
        print(convolve(getattr(torch, sys.argv[2]), float(sys.argv[3])))
    else:
        import peer_networks
        main()
