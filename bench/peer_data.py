"""Examples for the comparison with peers (bench/peers.py): made ones of RCV1's shape, and files that are there.

Made ones have about 74 of 47,236 features each, drawn by Zipf's law, ids scattered, rows of unit length, labels of a logistic
model, and 20,000 further examples to validate on. Needs numpy and scipy (Debian: python3-sklearn brings both).
"""
import os

FEATURES, NONZEROS, VALID = 47236, 74, 20000


def draw(rng, n, cumulated, id_of_rank, idf):
    """n rows as CSR: distinct features by Zipf's law, tf-idf values of unit length."""
    import numpy as np
    from scipy.sparse import csr_matrix

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
    """(x, y) to train on and (x, y) to validate on, the same in each call."""
    import numpy as np

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
    with open(path + ".part", "w") as f:
        for i in range(x.shape[0]):
            a, b = x.indptr[i], x.indptr[i + 1]
            row = zip((x.indices[a:b] + 1).tolist(), x.data[a:b].tolist())
            f.write(f"{y[i]} " + " ".join(f"{j}:{v:.6g}" for j, v in row) + "\n")
    os.rename(path + ".part", path)


class DataSet:
    """A file of LIBSVM text to train on and one to validate on."""

    def __init__(self, name, train, valid):
        self.name, self.train, self.valid = name, train, valid
        self.megabytes = os.path.getsize(train) / 1e6  # of text
        self.examples = self.columns = 0
        with open(train, "rb") as f:
            for line in f:  # and now it is in the page cache
                self.examples += 1
                self.columns = max(self.columns, int(line.rsplit(b":", 1)[0].rsplit(b" ", 1)[-1]) if b":" in line else 0)


def made(n, folder):
    """Of n examples; files that the folder has already are taken."""
    train, valid = os.path.join(folder, f"{n}.svm"), os.path.join(folder, f"{n}.valid")
    if not (os.path.exists(train) and os.path.exists(valid)):
        examples = make_examples(n)
        write_libsvm(train, *examples[0])
        write_libsvm(valid, *examples[1])
    return DataSet(f"{n:,} made", train, valid)
