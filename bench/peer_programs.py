"""Running shmtrain and its peers for bench/peers.py, each as a user does, from the start of the process to its end.

All minimise mean log loss + l2/2 |w|^2 without a bias, l2 being 1 / examples: LIBLINEAR's -s 0 -c 1, scikit-learn's
LogisticRegression(C=1, fit_intercept=False). Models are saved in LIBLINEAR's format, and all are judged by shmtrain eval.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import time

SKLEARN = """
import sys, time
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
begun = time.perf_counter()
x, y = load_svmlight_file(sys.argv[1])
loaded = time.perf_counter()
model = LogisticRegression(C=1, fit_intercept=False, max_iter=1000, solver=sys.argv[3], tol=float(sys.argv[4])).fit(x, y)
print(loaded - begun, time.perf_counter() - begun)
with open(sys.argv[2], "w") as f:
    f.write("solver_type L2R_LR\\nnr_class 2\\nlabel 1 -1\\nnr_feature %d\\nbias -1\\nw\\n" % x.shape[1])
    f.writelines("%.9g\\n" % w for w in model.coef_[0])
"""


def timed(argv):
    """Seconds from start to end, and what it printed."""
    begun = time.perf_counter()
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    seconds = time.perf_counter() - begun
    if done.returncode != 0:
        sys.exit(f"peers.py: {' '.join(argv)}: {done.stderr.strip()}")
    return seconds, done.stdout


def has_liblinear():
    return shutil.which("liblinear-train") is not None


def has_sklearn():
    return subprocess.run([sys.executable, "-c", "import sklearn"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def liblinear(data, model, epsilon, solver="0"):
    return timed(["liblinear-train", "-q", "-s", solver, "-c", "1", "-e", str(epsilon), data.train, model])[0]


def sklearn(data, model, tolerance, solver):
    """Seconds of loading and fitting, and of fitting; the time that importing takes is not counted."""
    loading, both = (float(x) for x in timed([sys.executable, "-c", SKLEARN, data.train, model, solver, str(tolerance)])[1].split())
    return both, both - loading


class Shmtrain:
    def __init__(self, program):
        self.program = program

    def _argv(self, data, workers, *more):
        return [self.program, "-q", "-w", str(workers), "--mode", "async", "-e", "10", "--bias", "0", "--l2",
                repr(1 / data.examples), *more]

    def train(self, data, model, workers, *more):
        """The same of steps of SGD."""
        seconds, out = timed([*self._argv(data, workers, "--json", "--format", "liblinear", "-o", model, *more), data.train])
        return seconds, json.loads(out)["train_seconds"]

    def fit(self, data, model, workers, tolerance):
        """Seconds of a fit that proves that it is so near the optimum: from start to end, and of training."""
        seconds, out = timed([self.program, "-q", "--json", "-w", str(workers), "--bias", "0", "--C", "1", "--tolerance", repr(tolerance),
                              "--format", "liblinear", "-o", model, data.train])
        return seconds, json.loads(out)["train_seconds"]

    def load(self, data, workers, path=None):
        """Seconds of a run of one work item, and, by its own account, until it trains, and of the longest reader in it."""
        seconds, out = timed([*self._argv(data, workers, "--json", "--steps", "1"), path or data.train])
        report = json.loads(out)
        return seconds, report["load_seconds"], max(worker["load_seconds"] for worker in report["per_worker"])

    def convert(self, data, path):
        timed([self.program, "data", "convert", data.train, "-o", path])

    def loss(self, model, path):
        return json.loads(timed([self.program, "eval", "--json", model, path])[1])["loss"]

    def objective(self, model, path, examples):
        with open(model) as f:
            weights = f.read().split("\nw\n")[1].split()
        return self.loss(model, path) + sum(float(w) ** 2 for w in weights) / (2 * examples)

    def memory(self, path, workers):
        """Memory of all processes of a run that trains: the sum of their proportional shares (Pss); and the parameters' bytes."""
        argv = [self.program, "-q", "--json", "-w", str(workers), "-e", "1000000", path]
        run = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True)
        try:
            while run.poll() is None and len(processes(run.pid, "shmtrain-w")) < workers:
                time.sleep(0.05)
            time.sleep(1)
            has_ended, total = run.poll() is not None, sum(pss(pid) for pid in processes(run.pid, "shmtrain"))
        finally:
            run.terminate()  # it is in a session of its own, and would train on without us
            out, errors = run.communicate()
        if has_ended:
            sys.exit(f"peers.py: {' '.join(argv)}: {errors.strip() or 'ended too early'}")
        return total, json.loads(out)["parameter_bytes"]


def processes(session, name):
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                pid, rest = f.read().split(" (", 1)
        except OSError:
            continue
        command, fields = rest.rsplit(")", 1)
        if int(fields.split()[3]) == session and command.startswith(name):
            found.append(int(pid))
    return found


def pss(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            return 1024 * sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    except OSError:
        return 0


def read_once(path, n_processes=1):
    """Seconds of reading a file by read(2), a quarter of a MiB at a time; by several processes at once, each a part of its own."""
    size = os.path.getsize(path)
    start, go = os.pipe()
    said, say = os.pipe()
    for i in range(n_processes):
        if os.fork() == 0:
            os.close(go)
            os.read(start, 1)  # ends when the parent closes it
            os.write(say, b"%f %f\n" % read_part(path, size * i // n_processes, size * (i + 1) // n_processes))
            os._exit(0)
    time.sleep(0.05)  # all wait there
    for end in (start, go, say):
        os.close(end)
    with open(said) as f:
        times = [[float(x) for x in line.split()] for line in f]
    for _ in range(n_processes):
        os.wait()
    return max(end for _, end in times) - min(begun for begun, _ in times)


def read_part(path, at, end):
    """When it began, and when it ended."""
    buffer = bytearray(1 << 18)
    f = os.open(path, os.O_RDONLY)
    begun = time.perf_counter()
    while at < end:
        at += os.preadv(f, [memoryview(buffer)[: end - at]], at)
    return begun, time.perf_counter()


def liblinear_memory(data, model):
    """The most that liblinear-train had at a time."""
    pid = os.posix_spawnp("liblinear-train", ["liblinear-train", "-q", "-s", "0", data.train, model], os.environ)
    return 1024 * os.wait4(pid, 0)[2].ru_maxrss
