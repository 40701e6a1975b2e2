"""Reads a model or a checkpoint that shmtrain has written, with NumPy: prints where the run stood, and the tensors.

usage: read_checkpoint.py FILE"""
import json
import struct
import sys

import numpy as np

import seal  # beside this file

DTYPES = {"F32": "<f4", "F64": "<f8", "U32": "<u4", "U64": "<u8"}


def read(path):
    """The tensors by their names, and the notes, which are strings."""
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))  # the format is safetensors: this, a header of JSON, data
        header = json.loads(f.read(n))
        data = f.read()
    notes = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, notes


if not seal.check(sys.argv[1]):
    print(f"read_checkpoint.py: {sys.argv[1]} has no seal, so damage to it goes unnoticed", file=sys.stderr)
tensors, notes = read(sys.argv[1])
print("model:", notes.get("shmtrain.model", "none is named"))
if "shmtrain.checkpoint" in notes:
    run = json.loads(notes["shmtrain.checkpoint"])
    print(f"position: {run['epoch']} of {run['epochs']} epochs, and {run['step']} steps of the next one")
    print(f"run: mode {run['mode']}, {run['optimizer']}, rate {run['rate']:.6g}, seed {run['seed']}")
    for number, _, examples, seconds, train_loss, *_ in tensors.get("run/epochs", ()):
        print(f"epoch {number:.0f}: {examples:.0f} examples in {seconds:.3g} s, loss {train_loss:.5f}")
    done = tensors.get("ledger/done")  # examples of each piece of the epoch in progress; 0: it is still to be done
    if done is not None:
        print(f"in progress: {done.sum()} examples are done, loss {tensors['ledger/loss'].sum() / max(1, done.sum()):.5f}")
for name, tensor in tensors.items():
    kind = "parameters" if tensor.dtype == "<f4" and "/" not in name else "more"
    print(f"{name}: {kind}, {tensor.dtype}, {tensor.shape}, mean {tensor.mean() if tensor.size else 0:.6g}")
