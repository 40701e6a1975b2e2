#!/usr/bin/python3
"""shmtrain against scikit-learn's SGDClassifier, on the same examples, in turns.

usage: bench/peers.py [--examples N] [--rounds N] [PATH/TO/shmtrain]        (needs Debian's python3-sklearn)

The examples have the shape of RCV1: about 74 of 47,236 features each, drawn by Zipf's law, ids scattered, rows of unit length,
labels of a logistic model. Both programs train logistic regression by stochastic gradient descent without regularisation, on one
thread; shmtrain with two workers, too. An epoch's time is what each says of it: scikit-learn's partial_fit, without making its
arrays; shmtrain's "seconds" of the epoch. Each has the schedule of a few that ends lowest: scikit-learn's invscaling from several
eta0, shmtrain's default or a cosine from several rates. Losses are of 20,000 further examples, after as many epochs.
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
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import SGDClassifier
    from sklearn.metrics import log_loss
except ImportError as missing:
    sys.exit(f"peers.py: {missing}; apt-get install python3-sklearn")

FEATURES, NONZEROS, VALID, EPOCHS = 47236, 74, 20000, 5


def draw(rng, n, cumulated, id_of_rank, idf):
    """n rows as CSR: distinct features by Zipf's law, tf-idf values of unit length."""
    rank = np.searchsorted(cumulated, rng.random((n, 2 * NONZEROS)))
    rank.sort(axis=1)
    fresh = np.ones_like(rank, dtype=bool)
    fresh[:, 1:] = rank[:, 1:] != rank[:, :-1]
    wanted = np.clip(rng.normal(NONZEROS, NONZEROS / 3, n), 10, None)
    keep = fresh & (rng.random(rank.shape) < (wanted / fresh.sum(axis=1))[:, None])
    start = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    rows = np.repeat(np.arange(n), keep.sum(axis=1))
    value = (1 + np.log(rng.integers(1, 5, start[-1]))) * idf[rank[keep]]
    value /= np.sqrt(np.bincount(rows, value**2, n))[rows]
    x = csr_matrix((value.astype(np.float32), id_of_rank[rank[keep]].astype(np.int32), start), (n, FEATURES))
    x.sort_indices()
    return x


def make_examples(n):
    rng = np.random.default_rng(1)
    rank = np.arange(FEATURES)
    weight = 1 / ((rank + 20) * (1 + rank / (FEATURES / 10)))
    cumulated = np.cumsum(weight / weight.sum())
    cumulated[-1] = 1
    idf = np.log(1 + 1 / (NONZEROS * weight / weight.sum()))
    id_of_rank = rng.permutation(FEATURES)
    x = draw(rng, n + VALID, cumulated, id_of_rank, idf)
    planted = np.where(rank < FEATURES // 50 + 100, rng.choice([-1.0, 1.0], FEATURES), 0)[np.argsort(id_of_rank)]
    margin = x @ planted
    margin *= 4.5 / margin.std()
    y = np.where(rng.random(n + VALID) < 1 / (1 + np.exp(-margin)), 1, -1)
    return (x[:n], y[:n]), (x[n:], y[n:])


def write_libsvm(path, x, y):
    with open(path, "w") as f:
        for i in range(x.shape[0]):
            a, b = x.indptr[i], x.indptr[i + 1]
            row = zip((x.indices[a:b] + 1).tolist(), x.data[a:b].tolist())
            f.write(f"{y[i]} " + " ".join(f"{j}:{v:.6g}" for j, v in row) + "\n")


def sklearn_run(eta0, wide, valid):
    """Seconds of each epoch, and the last loss."""
    model = SGDClassifier(loss="log_loss", penalty=None, learning_rate="invscaling", power_t=0.5 if eta0 > 10 else 0.1,
                          eta0=eta0, shuffle=True, random_state=1)
    seconds = []
    for _ in range(EPOCHS):
        begun = time.perf_counter()
        model.partial_fit(*train, classes=[-1, 1])
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", default="./shmtrain")
    parser.add_argument("--examples", type=int, default=200000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    train, valid = make_examples(options.examples)
    wide = train[0].astype(np.float64), train[1]  # what partial_fit would else make anew in each call
    eta0 = min([1, 3, 10, 30, 100, 300], key=lambda r: sklearn_run(r, wide, valid)[1])
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, "train.svm"), os.path.join(folder, "valid.svm")]
        write_libsvm(paths[0], *train)
        write_libsvm(paths[1], *valid)
        schedule = min([[]] + [["--schedule", "cosine", "--rate", rate] for rate in ("1", "0.7", "0.5")],
                       key=lambda s: shmtrain_run(options.program, 1, s, paths)[1])
        peer, one, two = [], [], []
        for _ in range(options.rounds):
            peer.append(sklearn_run(eta0, wide, valid))
            one.append(shmtrain_run(options.program, 1, schedule, paths))
            two.append(shmtrain_run(options.program, 2, schedule, paths))
    median = lambda run: statistics.median(run[0][1:])
    print(f"peers: {train[0].shape[0]} examples, {train[0].nnz / train[0].shape[0]:.1f} nonzeros each, {EPOCHS} epochs")
    for name, runs in (("scikit-learn", peer), ("shmtrain -w 1", one), ("shmtrain -w 2", two)):
        each = [1e9 * median(r) / train[0].shape[0] for r in runs]
        print(f"  {name:<46} {statistics.median(each):9.3f} ns/example  loss {statistics.median(r[1] for r in runs):.5f}")
    figure("an epoch of scikit-learn, of shmtrain -w 1", [median(p) / median(r) for p, r in zip(peer, one)])
    figure("an epoch of scikit-learn, of shmtrain -w 2", [median(p) / median(r) for p, r in zip(peer, two)])


if __name__ == "__main__":
    main()
