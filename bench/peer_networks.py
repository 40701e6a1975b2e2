#!/usr/bin/python3
"""shmtrain's networks against PyTorch as Debian packages it, on the same images, in turns, as ratios.

usage: bench/peer_networks.py [OPTION...] [PATH/TO/shmtrain]        (apt-get install python3-torch)

  --networks LIST   of cnn and mlp; both unless said otherwise
  --parts LIST      of one, two, alone, hosts and memory; all unless said otherwise
  --rounds N        15
  --seconds X       of each run, about; 4

Both train the same network on as many images of 28 x 28 pixels, 51,200 for mlp and 6,400 for cnn (random bytes: speed does not follow
what they show), by momentum 0.9, with batches of 128, and see them as they are (--augment none --normalise none). No
gradient is clipped, and no rate warms up (--clip-norm 0 --warmup 0). A figure is images in a second of steps, without loading and without the
first epoch, or the first steps.

one       one worker with one thread, by default (sync) and in async with items of 128, and PyTorch with one thread
two       two workers in async and in sync, and PyTorch with two threads, with two Hogwild processes that share their parameters
          (torch.multiprocessing), and with two processes of DistributedDataParallel over gloo. Each worker and each process has 128
          images of its own for an update: items of 128 in async, batches of 256 in sync
alone     two workers, async at its default item and sync at a batch of 512, against two runs with one worker that share nothing, each on
          its own core at the same time; and against twice the slower of these, for in sync nobody is done before the slower core
hosts     two hosts of one worker on this machine (shmtrain launch --local 2), in sync with batches of 256 and of 512, and in allreduce, against two
          processes of DistributedDataParallel over gloo, whose sums go through the loopback, too, with batches of 128 and of 256 each
memory    what one more process takes (Pss) while both train: two workers and one, two Hogwild processes and one, of images that they share

Run it on an idle machine with two cores or more.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError as missing:
    sys.exit(f"networks: skipped, {missing}; apt-get install python3-torch")

BATCH, SIDE, CLASSES = 128, 28, 10
LONGEST = 600  # seconds of a run: then something hangs
EACH_SECOND = {"cnn": 1200, "mlp": 100000}  # images, about: sets how long a run is
IMAGES = {"cnn": 50 * BATCH, "mlp": 400 * BATCH}


# ---- PyTorch, in processes of its own: peer_networks.py --peer HOW NETWORK SECONDS ----


def network_of(name):
    from torch import nn
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 128), nn.ReLU(), nn.Linear(128, CLASSES))
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
                         nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 20), nn.ReLU(), nn.Linear(20, CLASSES))


def images_of(name):
    import torch
    return torch.rand(IMAGES[name], 1, SIDE, SIDE), torch.randint(0, CLASSES, (IMAGES[name],))


def train_peer(model, data, steps_of_it, meet=None, batch=BATCH):
    """Images in a second."""
    import torch
    images, labels = data
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    loss_of, begun, steps = torch.nn.CrossEntropyLoss(), None, 0
    for step in range(1 << 30):
        if step == 5:
            if meet:
                meet()
            begun = time.perf_counter()
        at = step * batch % len(images)
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(images[at:at + batch]), labels[at:at + batch]).backward()
        optimizer.step()
        if step >= 5:
            steps += 1
            if steps >= steps_of_it:
                break
    return steps * batch / (time.perf_counter() - begun)


def hogwild_worker(model, data, steps, meet, out):
    import torch
    torch.set_num_threads(1)
    out.put(train_peer(model, data, steps, lambda: meet.wait(LONGEST)))


def ddp_worker(rank, name, data, steps, folder, out, batch):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(network_of(name))
    out.put(train_peer(model, data, steps, dist.barrier, batch))
    dist.destroy_process_group()


def peer(how, name, seconds):
    import torch
    import torch.multiprocessing as mp
    steps, data = max(10, int(float(seconds) * EACH_SECOND[name] / BATCH)), images_of(name)
    if how in ("1", "2"):
        torch.set_num_threads(int(how))
        print(train_peer(network_of(name), data, steps))
        return
    torch.set_num_threads(1)
    ctx = mp.get_context("spawn")
    out = ctx.Queue()
    for tensor in data:
        tensor.share_memory_()
    with tempfile.TemporaryDirectory() as folder:
        if how.startswith("ddp"):
            batch = int(how[3:] or BATCH)
            more = (name, data, max(10, steps * BATCH // batch), folder, out, batch)
            run = [ctx.Process(target=ddp_worker, args=(rank, *more), daemon=True) for rank in range(2)]
        else:
            n = 1 if how == "hogwild1" else 2
            model, meet = network_of(name), ctx.Barrier(n)
            model.share_memory()
            run = [ctx.Process(target=hogwild_worker, args=(model, data, steps, meet, out), daemon=True) for _ in range(n)]
        for process in run:
            process.start()
        speeds = [out.get(timeout=LONGEST) for _ in run]
        for process in run:
            process.join(LONGEST)
    print(sum(speeds))


# ---- runs ----


def output_of(run, argv):
    """What a run has printed; who fails or hangs ends the bench with its words."""
    try:
        out, errors = run.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        run.kill()
        sys.exit(f"peer_networks.py: {' '.join(argv)}: no end after {LONGEST} s")
    if run.returncode != 0:
        sys.exit(f"peer_networks.py: {' '.join(argv)}: {errors.strip()}")
    return out


def started(argv):
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.slower = options, folder, 0

    def data(self, network):
        path = os.path.join(self.folder, f"{network}.npz")
        if not os.path.exists(path):
            random = np.random.default_rng(1)
            np.savez(path, x=random.integers(0, 256, (IMAGES[network], SIDE, SIDE), dtype=np.uint8),
                     y=np.resize(np.arange(CLASSES), IMAGES[network]).astype(np.uint8))
        return path

    def argv(self, network, workers, *more):
        epochs = 1 + max(1, round(self.options.seconds * EACH_SECOND[network] * 1.5 / IMAGES[network]))
        return [self.options.program, "-q", "--json", "-M", network, "--augment", "none", "--normalise", "none", "--rate", "1e-3", "--clip-norm", "0", "--warmup", "0",
                "-w", str(workers), "-e", str(epochs), *more, self.data(network)]

    @staticmethod
    def speed_of(out):
        """Of the epochs behind the first one, which brings memory in."""
        epochs = json.loads(out)["epochs"][1:]
        return sum(e["examples"] for e in epochs) / sum(e["seconds"] for e in epochs)

    def ours(self, network, workers, *more):
        argv = self.argv(network, workers, *more)
        return self.speed_of(output_of(started(argv), argv))

    def alone(self, network, *more):
        """Two that share nothing, each on its core: those where workers would be."""
        argv = [["taskset", "-c", str(core), *self.argv(network, 1, *more)] for core in two_cores()]
        runs = [started(each) for each in argv]
        speeds = [self.speed_of(output_of(run, each)) for run, each in zip(runs, argv)]
        self.slower = min(speeds)
        return sum(speeds)

    def peer(self, how, network):
        argv = [sys.executable, __file__, "--peer", how, network, str(self.options.seconds)]
        return float(output_of(started(argv), argv).split()[-1])

    def table(self, network, title, columns, ratios):
        """Rounds of all columns, in turns; medians, and ratios of columns of the same round."""
        print(f"{network}, {title}: images/s, medians of {self.options.rounds} rounds", flush=True)
        found = {name: [] for name in columns}
        for _ in range(self.options.rounds):
            for name, call in columns.items():
                found[name].append(call())
        for name, speeds in found.items():
            print(f"  {name:<46} {statistics.median(speeds):11.0f}")
        for name, ours, theirs in ratios:
            each = [found[ours][k] / max(found[t][k] for t in theirs) for k in range(self.options.rounds)]
            q = statistics.quantiles(each, n=4, method="inclusive") if len(each) > 1 else [each[0]] * 3
            print(f"  {name:<46} {q[1]:11.3f} x   [{q[0]:.3f} .. {q[2]:.3f}]", flush=True)

    def one(self, network):
        self.table(network, "one thread", {"PyTorch, one thread": lambda: self.peer("1", network),
                                           "shmtrain -w 1": lambda: self.ours(network, 1),
                                           "shmtrain -w 1, async": lambda: self.ours(network, 1, "--mode", "async", "--item", str(BATCH))},
                   [("shmtrain / PyTorch", "shmtrain -w 1", ["PyTorch, one thread"]),
                    ("async / PyTorch", "shmtrain -w 1, async", ["PyTorch, one thread"])])

    def two(self, network):
        peers = {"PyTorch, two threads": "2", "PyTorch, two Hogwild processes": "hogwild", "PyTorch, two processes of DDP": "ddp"}
        columns = {name: lambda how=how: self.peer(how, network) for name, how in peers.items()}
        columns["shmtrain -w 2, async"] = lambda: self.ours(network, 2, "--mode", "async", "--item", str(BATCH))
        columns["shmtrain -w 2, sync"] = lambda: self.ours(network, 2, "--mode", "sync", "--batch", str(2 * BATCH))
        self.table(network, "two cores", columns, [(f"{mode} / the best of PyTorch", f"shmtrain -w 2, {mode}", list(peers))
                                                   for mode in ("async", "sync")])

    def alone_part(self, network):
        for mode, more in (("async", ("--mode", "async")), ("sync, batch 512", ("--mode", "sync", "--batch", "512"))):
            self.table(network, f"two workers, {mode}",
                       {"two that share nothing": lambda: self.alone(network, *more), "the slower of them, twice": lambda: 2 * self.slower,
                        "two workers": lambda: self.ours(network, 2, *more)},
                       [("two workers / two that share nothing", "two workers", ["two that share nothing"]),
                        ("two workers / the slower of them, twice", "two workers", ["the slower of them, twice"])])

    def two_hosts(self, network, *more):
        argv = self.argv(network, 1, *more)
        argv[1:1] = ["launch", "--local", "2", "--"]
        return self.speed_of(output_of(started(argv), argv))

    def hosts(self, network):
        for batch in (BATCH, 2 * BATCH):
            ddp, words = f"PyTorch, DDP, batches of {batch} each", ("--batch", str(2 * batch))
            columns = {ddp: lambda batch=batch: self.peer(f"ddp{batch}", network)}
            columns.update({f"shmtrain, two hosts, {mode}": lambda mode=mode, words=words: self.two_hosts(network, "--mode", mode, *words)
                            for mode in ("sync", "allreduce")})
            self.table(network, "two hosts of one worker", columns,
                       [(f"{mode} / DDP", f"shmtrain, two hosts, {mode}", [ddp]) for mode in ("sync", "allreduce")])

    def memory(self, network):
        ours = [pss_of(self.argv(network, w, "--mode", "async", "-e", "1000000")) for w in (1, 2)]
        peers = [pss_of([sys.executable, __file__, "--peer", how, network, "60"]) for how in ("hogwild1", "hogwild")]
        print(f"{network}, memory: MiB (Pss) of all processes")
        print(f"  {'shmtrain, one and two workers':<46} {ours[0]:11.1f} {ours[1]:11.1f}")
        print(f"  {'PyTorch, one and two Hogwild processes':<46} {peers[0]:11.1f} {peers[1]:11.1f}")
        print(f"  {'one more: shmtrain / PyTorch':<46} {(ours[1] - ours[0]) / (peers[1] - peers[0]):11.3f} x")


def two_cores():
    """Of different cores of the machine, not two threads of one."""
    cores = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as f:
            cores.setdefault(f.read(), cpu)
    if len(cores) < 2:
        sys.exit("peer_networks.py: this needs two cores; --parts one does not")
    return list(cores.values())[:2]


def pss_of(argv):
    """MiB of a run's processes, some seconds after its start."""
    run = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        time.sleep(12)
        if run.poll() is not None:
            sys.exit(f"peer_networks.py: {' '.join(argv)}: it has ended too early")
        total = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.getsid(int(pid)) == run.pid:
                    with open(f"/proc/{pid}/smaps_rollup") as f:
                        total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
            except (OSError, ProcessLookupError):
                continue
        return total / 1024
    finally:
        if run.poll() is None:
            os.killpg(run.pid, 9)
        run.wait()


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--networks", default="cnn,mlp")
    parser.add_argument("--parts", default="one,two,alone,hosts,memory")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("program", nargs="?", default="./shmtrain")
    options = parser.parse_args()
    parts = {"one": Bench.one, "two": Bench.two, "alone": Bench.alone_part, "hosts": Bench.hosts, "memory": Bench.memory}
    for part in options.parts.split(","):
        if part not in parts:
            sys.exit(f"peer_networks.py: there is no part {part}: use {','.join(parts)}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        for network in options.networks.split(","):
            for part in options.parts.split(","):
                parts[part](bench, network)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(*sys.argv[2:5])
    else:
        main()
