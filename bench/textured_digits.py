#!/usr/bin/python3
"""Digits that are harder to read: those of MNIST in the colours' complement over coloured textures with noise, as a CIFAR-10 binary file.

usage: bench/textured_digits.py IMAGES LABELS N OUT            (apt-get install python3-numpy)

  IMAGES LABELS     such as mnist/train-images-idx3-ubyte.gz mnist/train-labels-idx1-ubyte.gz
  N                 so many of the first images
  OUT               such as train.bin: shmtrain reads it, 3 x 32 x 32 bytes an image

The same arguments make the same file. docs/networks.md says what networks reach on 20,000 of them, tested on 2,000:

    bench/textured_digits.py mnist/train-images-idx3-ubyte.gz mnist/train-labels-idx1-ubyte.gz 20000 train.bin
    bench/textured_digits.py mnist/t10k-images-idx3-ubyte.gz mnist/t10k-labels-idx1-ubyte.gz 2000 test.bin
    bench/digits.py --models cnn --epochs 3 train.bin test.bin
"""
import gzip
import sys

import numpy

SIDE, DIGIT, COARSE = 32, 28, 6


def read(name, header):
    with (gzip.open if name.endswith(".gz") else open)(name) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def textures(draw, n):
    """Random numbers on a coarse grid, with what lies between by interpolation; each colour with a brightness of its own. (n, 3, 32, 32)"""
    coarse = draw.normal(size=(n, 3, COARSE, COARSE))
    at = numpy.linspace(0, COARSE - 1 - 1e-3, SIDE)
    cell, part = at.astype(int), at - at.astype(int)
    rows = coarse[:, :, cell] * (1 - part)[:, None] + coarse[:, :, cell + 1] * part[:, None]
    smooth = rows[:, :, :, cell] * (1 - part) + rows[:, :, :, cell + 1] * part
    return numpy.clip(128 + 60 * smooth + 40 * draw.normal(size=(n, 3, 1, 1)), 0, 255)


def main():
    if len(sys.argv) != 5 or not sys.argv[3].isdigit():
        sys.exit(__doc__)
    n = int(sys.argv[3])
    image = read(sys.argv[1], 16).reshape(-1, DIGIT, DIGIT)[:n]
    label = read(sys.argv[2], 8)[:n]
    draw = numpy.random.default_rng(len(image))
    edge = (SIDE - DIGIT) // 2
    ink = numpy.pad(image / 255, ((0, 0), (edge, edge), (edge, edge)))[:, None]
    seen = numpy.abs(textures(draw, len(image)) - ink * draw.uniform(120, 255, size=(len(image), 3, 1, 1)))
    out = numpy.empty((len(image), 1 + 3 * SIDE * SIDE), numpy.uint8)
    out[:, 0] = label
    out[:, 1:] = numpy.clip(seen, 0, 255).reshape(len(image), -1)
    out.tofile(sys.argv[4])


if __name__ == "__main__":
    main()
