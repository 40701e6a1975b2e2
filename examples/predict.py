"""Reads a model that shmtrain has saved, by hand, and counts how many examples of a LIBSVM file it gets right. Made for
models of two labels (logistic, svm): others have more weights for a feature, or no labels.

usage: predict.py MODEL DATA"""
import json
import struct
import sys

with open(sys.argv[1], "rb") as f:
    (n,) = struct.unpack("<Q", f.read(8))
    header = json.loads(f.read(n))
    data = f.read()
model = header.get("__metadata__", {}).get("shmtrain.model")  # None: parameters of somebody's own worker functions
if model not in ("logistic", "svm"):
    kind = f"is a {model} model" if model else "names no model"
    sys.exit(f"predict.py: {sys.argv[1]} {kind}, and this is made for logistic and svm")
begin, end = header["weight"]["data_offsets"]
weight = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])  # or numpy.frombuffer(data[begin:end], "<f4")
meta = header["__metadata__"]  # strings, all of them
n_features, first = int(meta["shmtrain.features"]), int(meta["shmtrain.first_feature"])
bias = weight[n_features] if meta["shmtrain.bias"] == "1" else 0.0
labels = float(meta["shmtrain.label_low"]), float(meta["shmtrain.label_high"])

right = total = 0
for line in open(sys.argv[2]):
    words = line.partition("#")[0].split()
    score = bias
    for word in words[1:]:
        index, _, value = word.partition(":")
        if index != "qid" and 0 <= int(index) - first < n_features:  # others did not occur in training
            score += weight[int(index) - first] * float(value)
    if words:
        right += float(words[0]) == labels[score > 0]
        total += 1
print(f"{right} of {total} right: {100 * right / total:.2f} %")
