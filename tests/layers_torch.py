#!/usr/bin/env python3
"""Numbers of torch for tests/test_layers_torch.c, as a header: outputs and gradients of small networks, in doubles.

usage: tests/layers_torch.py | clang-format > tests/layers_torch.h      (needs Debian's python3-torch; the test itself needs only the header)

Inputs, parameters and slopes are made by the hash of src/base/random.h, so only results have to be written down. Tables lie as in
src/layers: filters (filters, height, width, channels), activations (height, width, channels)."""
import torch
import torch.nn.functional as F

MASK = (1 << 64) - 1
MOST = 64  # numbers of each table that are written down, evenly spread

CASES = [
    ("fc:7", (2, 3, 4), 5, True),
    ("relu", (3, 4, 5), 2, True),
    ("tanh", (3, 4, 5), 2, True),
    ("sigmoid", (3, 4, 5), 2, True),
    ("gelu", (3, 4, 5), 2, True),
    ("conv:4:3", (3, 6, 7), 3, True),
    ("conv:6:3x2:stride=2x1:pad=1", (4, 7, 5), 2, True),
    ("conv:6:3:stride=2:pad=same:groups=2", (4, 8, 7), 2, True),
    ("conv:8:4:pad=same:bias=no", (3, 6, 6), 2, True),
    ("conv:16:3 relu", (8, 11, 10), 3, True),
    ("conv:24:3:pad=1", (16, 9, 14), 2, True),
    ("conv:8:3:pad=1 relu conv:16:3 relu conv:8:3 tanh", (1, 12, 13), 4, True),
    ("pool:2", (3, 5, 6), 2, True),
    ("pool:3:stride=2", (3, 7, 7), 2, True),
    ("pool:3x2:mean:stride=2x1", (3, 7, 5), 2, True),
    ("batchnorm", (3, 4, 5), 6, True),
    ("batchnorm", (3, 4, 5), 6, False),
    ("batchnorm:0.25:epsilon=0.001", (7, 1, 1), 9, True),
    ("dropout:0.25", (3, 4, 5), 3, False),
    ("conv:4:3 dropout:0.25 tanh flatten fc:5 dropout:0.5", (3, 5, 6), 3, True),
    ("layernorm", (3, 4, 5), 3, True),
    ("layernorm", (3, 4, 5), 3, False),
    ("conv:4:3:pad=same save conv:4:3:pad=same relu conv:4:3:pad=same add relu pool:2:mean flatten fc:3", (2, 6, 6), 3, True),
    ("conv:32:3 relu conv:64:3 relu pool:2 flatten fc:128 relu fc:20 relu fc:10", (1, 28, 28), 3, True),
]


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def hash_of(seed, a, b, c):
    return mix(mix(mix(mix(seed) ^ a) ^ b) ^ c)


def fill(seed, count):
    """net_fill of tests/layers_help.c: floats within -1 .. 1."""
    first = mix(seed)
    units = []
    for i in range(count):
        units.append((mix(mix(mix(first ^ i) ^ 0) ^ 0) >> 11) * 2.0**-53)
    return (torch.tensor(units, dtype=torch.float64).to(torch.float32) * 2 - 1).to(torch.float64)


def pair(text):
    parts = [int(x) for x in text.split("x")]
    return parts if len(parts) == 2 else parts * 2


class Net:
    """One network, with its tables in our order; numbers of statistics' gradients come out of `statistics`."""

    def __init__(self, n, training):
        self.n, self.training, self.number, self.tables, self.statistics = n, training, 0, [], {}

    def table(self, count, scale, offset=0.0):
        values = fill(50 + len(self.tables), count)
        values = ((values * scale).to(torch.float32) + torch.tensor(offset, dtype=torch.float32)).to(torch.float64)
        values.requires_grad_(True)
        self.tables.append(values)
        return values

    def conv(self, x, given, named):
        filters, (high, wide) = int(given[0]), pair(given[1])
        down, right = pair(named.get("stride", "1"))
        groups = int(named.get("groups", "1"))
        pad = named.get("pad", "0")
        if pad == "same":
            sides = []
            for size, kernel, stride in ((x.shape[3], wide, right), (x.shape[2], high, down)):
                need = max((-(-size // stride) - 1) * stride + kernel - size, 0)
                sides += [need // 2, need - need // 2]
        else:
            sides = [pair(pad)[1]] * 2 + [pair(pad)[0]] * 2
        own = x.shape[1] // groups
        weight = self.table(filters * high * wide * own, 0.5).reshape(filters, high, wide, own).permute(0, 3, 1, 2)
        bias = self.table(filters, 0.5) if named.get("bias") != "no" else None
        return F.conv2d(F.pad(x, sides), weight, bias, (down, right), 0, 1, groups)

    def batchnorm(self, x, given, named):
        channels, momentum = x.shape[1], float(given[0]) if given else 0.1
        scale, shift, mean, variance = (self.table(channels, 0.5, at) for at in (1.0, 0.0, 0.0, 1.0))
        moved = [mean.detach().clone(), variance.detach().clone()]
        y = F.batch_norm(x, *moved, scale, shift, self.training, momentum, float(named.get("epsilon", "0.00001")))
        for at, table, after in ((len(self.tables) - 2, mean, moved[0]), (len(self.tables) - 1, variance, moved[1])):
            self.statistics[at] = self.n * (table.detach() - after) / momentum
        return y

    def dropout(self, x, given):
        """The mask is ours (src/layers/dropout.c; seed, epoch and examples are those of tests/layers_help.c); what becomes of the numbers is torch's."""
        if not self.training:
            return F.dropout(x, float(given[0]), training=False)
        below, per_example = int(float(given[0]) * 65536 + 0.5), x[0].numel()
        stays = []
        for k in range(self.n):
            key = hash_of(3 ^ 0x64726F70, 2, 100 + k, self.number)
            stays += [(mix((key + i - i % 4) & MASK) >> 16 * (i % 4) & 0xFFFF) >= below for i in range(per_example)]
        mask = torch.tensor(stays).reshape(self.n, x.shape[2], x.shape[3], x.shape[1]).permute(0, 3, 1, 2)
        return x * mask / (1 - below / 65536)

    def layer(self, x, word):
        name, *arguments = word.split(":")
        given = [a for a in arguments if "=" not in a]
        named = dict(a.split("=") for a in arguments if "=" in a)
        if name == "conv":
            return self.conv(x, given, named)
        if name == "dropout":
            return self.dropout(x, given)
        if name == "batchnorm":
            return self.batchnorm(x, given, named)
        if name == "fc":
            flat = x.permute(0, 2, 3, 1).reshape(self.n, -1)
            weight = self.table(int(given[0]) * flat.shape[1], 0.5).reshape(int(given[0]), -1)
            return F.linear(flat, weight, self.table(int(given[0]), 0.5))[:, :, None, None]
        if name == "pool":
            window = pair(given[0])
            stride = pair(named["stride"]) if "stride" in named else window
            return (F.avg_pool2d if "mean" in given else F.max_pool2d)(x, window, stride)
        if name == "layernorm":
            flat = x.permute(0, 2, 3, 1).reshape(self.n, -1)
            flat = F.layer_norm(flat, flat.shape[1:], self.table(flat.shape[1], 0.5, 1.0), self.table(flat.shape[1], 0.5))
            return flat.reshape(self.n, x.shape[2], x.shape[3], x.shape[1]).permute(0, 3, 1, 2)
        if name == "flatten":
            return x.permute(0, 2, 3, 1).reshape(self.n, -1)[:, :, None, None]
        if name == "save":
            self.saved = x
            return x
        if name == "add":
            return x + self.saved
        return {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": F.gelu}[name](x)


def spread(values):
    values = values.reshape(-1)
    return values[:: len(values) // MOST + 1].tolist()


def run(text, extent, n, training):
    net = Net(n, training)
    x = fill(9, n * extent[0] * extent[1] * extent[2]).reshape(n, *extent)
    for net.number, word in enumerate(text.split()):
        x = net.layer(x, word)
    out = x.permute(0, 2, 3, 1).reshape(-1)
    numbers = spread(out.detach())
    if not training:
        return numbers
    if net.tables:
        (out * fill(5, len(out))).sum().backward()
    for at, table in enumerate(net.tables):
        numbers += spread(net.statistics.get(at, table.grad))
    return numbers


def main():
    print("/* Made by tests/layers_torch.py | clang-format > tests/layers_torch.h, with torch %s. */" % torch.__version__)
    print("#pragma once\n")
    print("enum { TORCH_MOST = %d };\n" % MOST)
    rows = []
    for i, (text, extent, n, training) in enumerate(CASES):
        numbers = ["%.9gf" % x if "." in "%.9g" % x or "e" in "%.9g" % x else "%.9g.0f" % x for x in run(text, extent, n, training)]
        print("static const float TORCH_%d[] = {" % i)
        for at in range(0, len(numbers), 8):
            print("    " + ", ".join(numbers[at : at + 8]) + ",")
        print("};")
        rows.append('    {"%s", {%d, %d, %d}, %d, %d, TORCH_%d, sizeof TORCH_%d / sizeof *TORCH_%d},' % (text, *extent, n, training, i, i, i))
    print("\nstatic const struct torch_case TORCH_CASES[] = {\n" + "\n".join(rows) + "\n};")


if __name__ == "__main__":
    main()
