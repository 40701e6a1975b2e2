"""An epoch of shmtrain against one of scikit-learn's SGDClassifier, on the same examples, in turns: a part of bench/peers.py.

Made examples of RCV1's shape (bench/peer_data.py). Both programs train logistic regression by stochastic gradient descent without
regularisation, on one thread; shmtrain with two workers, too. An epoch's time is what each says of it: scikit-learn's
partial_fit, without making its arrays; shmtrain's "seconds" of the epoch. Each has the schedule of a few that ends lowest: scikit-learn's
invscaling from several eta0, shmtrain's default or a cosine from several rates. Losses are of 20,000 further examples, after as
many epochs.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from peer_data import make_examples, write_libsvm

try:
    import numpy as np
    from sklearn.linear_model import SGDClassifier
    from sklearn.metrics import log_loss
except ImportError as missing:
    sys.exit(f"epochs: skipped, {missing}; apt-get install python3-sklearn")

EXAMPLES, EPOCHS = 200000, 5


def sklearn_run(eta0, wide, valid):
    """Seconds of each epoch, and the last loss."""
    model = SGDClassifier(loss="log_loss", penalty=None, learning_rate="invscaling", power_t=0.5 if eta0 > 10 else 0.1,
                          eta0=eta0, shuffle=True, random_state=1)
    seconds = []
    for _ in range(EPOCHS):
        begun = time.perf_counter()
        model.partial_fit(*wide, classes=[-1, 1])
        seconds.append(time.perf_counter() - begun)
    return seconds, log_loss(valid[1], model.predict_proba(valid[0]))


def shmtrain_run(program, workers, schedule, paths):
    """The same."""
    out = subprocess.run([program, "-q", "--json", "-w", str(workers), "-e", str(EPOCHS), "-M", "logistic", "--mode", "async",
                          *schedule, paths[0], "--valid", paths[1]], check=True, capture_output=True, text=True).stdout
    report = json.loads(out)
    return [e["seconds"] for e in report["epochs"]], report["epochs"][-1]["valid_loss"]


def figure(name, ratios):
    q = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [ratios[0]] * 3
    print(f"  {name:<46} {q[1]:9.3f} x           [{q[0]:.3f} .. {q[2]:.3f}] of {len(ratios)}")


def compare(program, rounds, pause):
    train, valid = make_examples(EXAMPLES)
    wide = train[0].astype(np.float64), train[1]  # what partial_fit would else make anew in each call
    eta0 = min([1, 3, 10, 30, 100, 300], key=lambda r: sklearn_run(r, wide, valid)[1])
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, "train.svm"), os.path.join(folder, "valid.svm")]
        write_libsvm(paths[0], *train)
        write_libsvm(paths[1], *valid)
        schedule = min([[]] + [["--schedule", "cosine", "--rate", rate] for rate in ("1", "0.7", "0.5")],
                       key=lambda s: shmtrain_run(program, 1, s, paths)[1])
        peer, one, two = [], [], []
        for _ in range(rounds):
            time.sleep(pause)
            peer.append(sklearn_run(eta0, wide, valid))
            one.append(shmtrain_run(program, 1, schedule, paths))
            two.append(shmtrain_run(program, 2, schedule, paths))
    median = lambda run: statistics.median(run[0][1:])
    print(f"epochs: {train[0].shape[0]} examples, {train[0].nnz / train[0].shape[0]:.1f} nonzeros each, {EPOCHS} epochs")
    for name, runs in (("scikit-learn", peer), ("shmtrain -w 1", one), ("shmtrain -w 2", two)):
        each = [1e9 * median(r) / train[0].shape[0] for r in runs]
        print(f"  {name:<46} {statistics.median(each):9.3f} ns/example  loss {statistics.median(r[1] for r in runs):.5f}")
    figure("an epoch of scikit-learn, of shmtrain -w 1", [median(p) / median(r) for p, r in zip(peer, one)])
    figure("an epoch of scikit-learn, of shmtrain -w 2", [median(p) / median(r) for p, r in zip(peer, two)])

