"""Reads a model that shmtrain has saved, by hand, and counts how many examples of a LIBSVM file it gets right. Made for
models of two labels (logistic, svm): others have more weights for a feature, or no labels.

usage: predict.py MODEL DATA"""
import json
import struct
import sys

import seal  # beside this file

sealed = seal.check(sys.argv[1])
with open(sys.argv[1], "rb") as f:
    (n,) = struct.unpack("<Q", f.read(8))
    header = json.loads(f.read(n))
    data = f.read()
model = header.get("__metadata__", {}).get("shmtrain.model")  # None: parameters of somebody's own worker functions
if model not in ("logistic", "svm"):
    kind = f"is a {model} model" if model else "names no model"
    sys.exit(f"predict.py: {sys.argv[1]} {kind}, and this is made for logistic and svm")
if not sealed:
    print(f"predict.py: {sys.argv[1]} has no seal, so damage to it goes unnoticed", file=sys.stderr)
begin, end = header["weight"]["data_offsets"]
weight = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])  # or numpy.frombuffer(data[begin:end], "<f4")
meta = header["__metadata__"]  # strings, all of them
n_features, first = int(meta["shmtrain.features"]), int(meta["shmtrain.first_feature"])
bias = weight[n_features] if meta["shmtrain.bias"] == "1" else 0.0
kind = meta.get("shmtrain.feature_ids")  # how ids become rows; as a rule they are a range
row = lambda i: i - first if 0 <= i - first < n_features else None  # others did not occur in training
if kind == "listed":  # they were too far apart for a range
    begin, end = header["feature_id"]["data_offsets"]
    row = {i: j for j, i in enumerate(struct.unpack(f"<{n_features}Q", data[begin:end]))}.get
elif kind == "hashed":  # the upper bits of SplitMix64
    bits, low64 = int(meta["shmtrain.hash_bits"]), 2**64 - 1
    def row(i):
        i = (i + 0x9E3779B97F4A7C15) & low64
        i = (i ^ i >> 30) * 0xBF58476D1CE4E5B9 & low64
        i = (i ^ i >> 27) * 0x94D049BB133111EB & low64
        return (i ^ i >> 31) >> 64 - bits
labels = float(meta["shmtrain.label_low"]), float(meta["shmtrain.label_high"])

right = total = 0
for line in open(sys.argv[2]):
    words = line.partition("#")[0].split()
    score = bias
    for word in words[1:]:
        index, _, value = word.partition(":")
        at = row(int(index)) if index != "qid" else None
        if at is not None:
            score += weight[at] * float(value)
    if words:
        right += float(words[0]) == labels[score > 0]
        total += 1
print(f"{right} of {total} right: {100 * right / total:.2f} %")
