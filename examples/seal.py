"""The seal of files that shmtrain has written, models and checkpoints: the note "shmtrain.xxh64" is XXH64 (seed 0) of the file from
byte 8 on, in which its own 16 digits count as zeros. Used by predict.py and read_checkpoint.py; works with the standard library
alone, and faster where the package xxhash is installed."""
import struct
import sys

KEY = b'"shmtrain.xxh64":"'
ALSO = b'"shmtrain.format":"', b'"shmtrain.checkpoint":"'  # files with one of these have a seal
P1, P2, P3, P4, P5 = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)
LOW64 = 2**64 - 1


def turn(x, bits):
    return (x << bits | x >> 64 - bits) & LOW64


def add(lane, word):
    return turn(lane + word * P2 & LOW64, 31) * P1 & LOW64


def xxh64(data):
    """XXH64 with seed 0, as a number."""
    n, at = len(data), len(data) // 32 * 32
    h = P5
    if n >= 32:
        a, b, c, d = (P1 + P2) & LOW64, P2, 0, -P1 & LOW64
        for w, x, y, z in struct.iter_unpack("<4Q", memoryview(data)[:at]):
            a, b, c, d = add(a, w), add(b, x), add(c, y), add(d, z)
        h = turn(a, 1) + turn(b, 7) + turn(c, 12) + turn(d, 18) & LOW64
        for lane in (a, b, c, d):
            h = ((h ^ add(0, lane)) * P1 + P4) & LOW64
    h = h + n & LOW64
    while at + 8 <= n:
        h = (turn(h ^ add(0, int.from_bytes(data[at : at + 8], "little")), 27) * P1 + P4) & LOW64
        at += 8
    if at + 4 <= n:
        h = (turn(h ^ int.from_bytes(data[at : at + 4], "little") * P1 & LOW64, 23) * P2 + P3) & LOW64
        at += 4
    for byte in data[at:]:
        h = turn(h ^ byte * P5 & LOW64, 11) * P1 & LOW64
    h = (h ^ h >> 33) * P2 & LOW64
    h = (h ^ h >> 29) * P3 & LOW64
    return h ^ h >> 32


def checksum(data):
    try:
        import xxhash
    except ImportError:
        return xxh64(data)
    return xxhash.xxh64_intdigest(data)


def check(path):
    """True: the file is as it was written; False: it has no seal, as older files have none. Ends the program if it is damaged."""
    with open(path, "rb") as f:
        length = f.read(8)
        data = bytearray(f.read())
    header = bytes(data[: int.from_bytes(length, "little")])
    at = header.find(KEY)
    if at < 0 and not any(key in header for key in ALSO):
        return False
    digits = slice(at + len(KEY), at + len(KEY) + 16)
    found = bytes(data[digits]).decode("ascii", "replace")
    data[digits] = b"0" * 16
    if at < 0 or found != f"{checksum(data):016x}":
        sys.exit(f"{path} is damaged: its checksum does not match its contents; use another copy of it, or create it again")
    return True
