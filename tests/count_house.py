#!/usr/bin/env python3
"""Counts how the house is built: what a change of its structure promised is counted before and after.

usage: tests/count_house.py [--build DIR] [--option NAME]

  code lines      of C, pages and scripts in src and bench: no blanks, no comments
  whole handle    files whose code sees the fields of struct shmtrain_store
  largest room    the folder below src with most lines, and its share of all of src
  option          files in src and bench that name one option (merge_every)
  upward arrows   includes, and with --build calls, from a room that stands higher in layers.txt to one that stands lower there.
                  DIR has the objects of a build
  sync update     with --build of a build with CFLAGS="-g -O0", and valgrind: files whose code runs for each update of a worker in
                  `--mode sync`, from the work item that is dealt to it to the meeting behind the update
"""

import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent.parent
C_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?\*/|//[^\n]*', re.S)
STRINGS = ('"', "'")


def code_lines(path):
    """Lines that are neither blank nor comment."""
    text = path.read_text(errors="replace")
    if path.suffix in (".c", ".h"):
        text = C_COMMENT.sub(lambda m: m.group() if m.group()[0] in STRINGS else " ", text)
    elif path.suffix == ".html":
        text = re.sub(r"<!--.*?-->|/\*.*?\*/|^\s*//[^\n]*", "", text, flags=re.S | re.M)
    elif path.suffix in (".py", ".sh"):
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    return sum(1 for line in text.splitlines() if line.strip())


def files(*places, suffixes=(".c", ".h", ".html", ".py", ".sh")):
    for place in places:
        yield from sorted(p for p in (HERE / place).rglob("*") if p.suffix in suffixes)


def room_of(path):
    part = pathlib.Path(path).parts
    return part[1] if part[0] == "src" else part[0]


def ranks():
    """Of each room, its place in layers.txt: lower rooms first."""
    lines = re.findall(r"^([a-z/_]+):", (HERE / "layers.txt").read_text(), flags=re.M)
    return {room: i for i, room in enumerate(lines)}


def included(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(errors="replace"), flags=re.M)


def seers():
    """Files that define struct shmtrain_store's fields, or include such a file, over any number of headers."""
    sources = list(files("src", "bench", suffixes=(".c", ".h")))
    sees = {p for p in sources if re.search(r"^struct shmtrain_store \{", p.read_text(errors="replace"), flags=re.M)}
    while True:
        more = {p for p in sources if any(HERE / "src" / name in sees for name in included(p))} - sees
        if not more:
            return sees
        sees |= more


def upward_includes(rank):
    for path in files("src", suffixes=(".c", ".h")):
        of = room_of(path.relative_to(HERE))
        for name in included(path):
            to = name.split("/")[0]
            if rank.get(to, -1) > rank.get(of, 99):
                yield f"{path.relative_to(HERE)} includes {name}"


def symbols(build):
    """(source, kind, name) of all symbols of a build's objects; each source once."""
    seen = set()
    for obj in sorted(pathlib.Path(build).glob("src/**/*.o")):
        name = re.sub(r"^lib[a-z0-9_]*_la-", "", obj.stem)
        source = (obj.parent.parent if obj.parent.name == ".libs" else obj.parent).relative_to(build) / name
        if str(source) in seen or not (HERE / f"{source}.c").exists():
            continue
        seen.add(str(source))
        for line in subprocess.run(["nm", obj], capture_output=True, text=True, check=True).stdout.splitlines():
            yield source, line.split()[-2], line.split()[-1]


def upward_calls(build, rank):
    defined, used = {}, []
    for source, kind, name in symbols(build):
        if kind in "TDRBV":
            defined[name] = source
        elif kind == "U":
            used.append((source, name))
    for source, name in used:
        to = defined.get(name)
        if to and rank.get(room_of(to), -1) > rank.get(room_of(source), 99):
            yield f"{source}.c uses {name} of {to}.c"


def sync_files(build):
    """Files with a function that runs for each update, by callgrind."""
    updates, epochs = 200, 2
    with tempfile.TemporaryDirectory() as work:
        rows = "".join(f"{'+1' if i % 3 else '-1'} {1 + i % 7}:1 {9 + i % 5}:0.5\n" for i in range(8 * updates // epochs))
        pathlib.Path(work, "rows.svm").write_text(rows)
        subprocess.run(["valgrind", "-q", "--tool=callgrind", "--toggle-collect=train_model", f"--callgrind-out-file={work}/out.%p",
                        "--compress-strings=no", f"{build}/shmtrain", "-q", "--mode", "sync", "-w", "1", "-b", "8", "--spawn", "threads",
                        "-e", str(epochs), "--scale", "no", "--valid", "none", "--columns", "given", "--l2", "0", f"{work}/rows.svm"],
                       check=True, capture_output=True, env={**os.environ, "SHMTRAIN_SEED": "1"})
        calls = collections.Counter()
        for out in pathlib.Path(work).glob("out.*"):
            at = None
            for line in out.read_text().splitlines():
                if line.startswith("cfn="):
                    at = (to, line[4:])
                elif line.startswith(("cfi=", "cfl=")):
                    to = line[4:]
                elif line.startswith("fn="):
                    to = here
                elif line.startswith("fl="):
                    here = to = line[3:]
                elif line.startswith("calls=") and at:
                    calls[at] += int(line[6:].split()[0])
        return sorted({re.sub(r".*/(src|include)/", r"\1/", f) for (f, _), n in calls.items() if n >= updates and re.search(r"/(src|include)/(?!.*gcc)", f)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build")
    parser.add_argument("--option", default="merge_every")
    parser.add_argument("--show", action="store_true", help="also what was counted")
    args = parser.parse_args()

    def tell(what, number, list_of=()):
        print(f"{what:<52} {number}")
        for line in list_of if args.show else ():
            print(f"    {line}")

    rank = ranks()
    tell("code lines in src and bench", sum(code_lines(p) for p in files("src", "bench")))
    whole = sorted(str(p.relative_to(HERE)) for p in seers())
    tell("files that see the whole handle", len(whole), whole)
    rooms = collections.Counter()
    for path in files("src", suffixes=(".c", ".h")):
        rooms[str(path.relative_to(HERE).parent)] += len(path.read_text(errors="replace").splitlines())
    room, lines = rooms.most_common(1)[0]
    tell("largest room's share of lines in src", f"{100 * lines / sum(rooms.values()):.1f} % ({room})")
    naming = [str(p.relative_to(HERE)) for p in files("src", "bench") if re.search(rf"\b{args.option}\b", p.read_text(errors="replace"))]
    tell(f"files that name {args.option}", len(naming), naming)
    arrows = list(upward_includes(rank))
    if args.build:
        arrows += upward_calls(args.build, rank)
    tell("includes and calls that run upwards" if args.build else "includes that run upwards (calls: --build)", len(arrows), arrows)
    if args.build and shutil.which("valgrind"):
        passed = sync_files(args.build)
        tell("files that one sync update passes", len(passed), passed)


if __name__ == "__main__":
    main()
