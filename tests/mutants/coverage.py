"""Which tests run which lines of the rooms: each test once, in a build whose blocks note that they were reached (trace.c)."""
import json
import re
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import build

CALL = "<__sanitizer_cov_trace_pc"


def traced(o):
    """How an object is compiled. Of the kernels -O0 would compile hundreds of templates with all their branches, half a minute for
    each file."""
    level = ("-O1", "-fno-reorder-blocks") if "kernels" in o else ("-O0",)
    return ("-g", "-fsanitize-coverage=trace-pc", *level)


def blocks(program):
    """(address that trace.c notes for a block, its lines) for each block of a program or library: what objdump says between one
    call of __sanitizer_cov_trace_pc and the next. The compiler was asked to keep a block's instructions together."""
    found, block, line = [], None, None
    place = re.compile(r"^(/.*):(\d+)(?: |$)")
    with subprocess.Popen(["objdump", "-dl", "--no-show-raw-insn", str(program)], stdout=subprocess.PIPE, text=True,
                          errors="replace") as listing:
        for text in listing.stdout:
            if text.startswith("/"):
                at = place.match(text)
                file = at[1][at[1].rindex("/src/") + 1 :] if at and "/src/" in at[1] else ""
                line = (file, int(at[2])) if file.startswith(build.ROOMS) else None
            elif text.endswith(">:\n"):
                block, line = None, None
            elif text.startswith(" "):
                if block and block[0] is None:
                    block[0] = int(text.split(":", 1)[0], 16)  # where the call returns to
                if CALL in text:
                    block = [None, set()]
                    found.append(block)
                if block and line:
                    block[1].add(line)
    return [(address, lines) for address, lines in found if address is not None and lines]


def by_file(lines):
    found = {}
    for file, line in sorted(lines):
        found.setdefault(file, []).append(line)
    return found


class Coverage:
    def __init__(self, base):
        self.base, self.folder = base, base.work / "traced"
        self.known_blocks, self.lock = {}, threading.Lock()
        self.notes = base.work / "coverage"

    def build(self):
        """The library and all that includes the rooms' headers once more, traced; kept in the work folder."""
        base = self.base
        self.notes.mkdir(exist_ok=True)
        farm = build.Farm(base, self.folder)
        of_tests = {o for p in set(base.tests.values()) for o in base.own_objects(p)}
        objects = sorted({o for file, found in base.dependents.items() if file.startswith(build.ROOMS) for o in found
                          if o in of_tests or o in base.library})
        with ThreadPoolExecutor(base.jobs) as pool:
            made = dict(zip(objects, pool.map(lambda o: farm.compile_once(o, traced(o)), objects)))
        trace = self.folder / "trace.o"
        build.call(["gcc", "-O2", "-fPIC", "-c", Path(__file__).parent / "trace.c", "-o", trace], base.tree)
        self.variant = build.Variant(base, self.folder / "linked", made, own=made, libraries=(trace,))

    def lines_of(self, test, runner):
        """Runs one test; writes what it has run. Returns how it ended."""
        with tempfile.TemporaryDirectory(dir=self.folder) as traces:
            library, program = self.variant.library(test), self.variant.program(test)
            result = runner(test, library, program, {"MUTANTS_TRACE": traces})
            lines, code = set(), set()
            for map_name, binary in (("lib", library / "libmut.so"), (Path(program).name, program)):
                path = Path(traces) / map_name
                if path.exists():
                    reached = path.read_bytes()
                    for address, of_block in self.blocks_of(binary):
                        code.update(of_block)
                        if address < len(reached) and reached[address]:
                            lines.update(of_block)
        note = self.notes / (test.replace("/", "_") + ".json")
        note.write_text(json.dumps({"test": test, "status": result.status, "seconds": round(result.seconds, 2),
                                    "lines": by_file(lines), "code": by_file(code)}))
        return result

    def blocks_of(self, binary):
        with self.lock:  # objdump takes a while
            return self.find_blocks(binary)

    def find_blocks(self, binary):
        key = str(binary)
        if key not in self.known_blocks:
            self.known_blocks[key] = blocks(binary)
        return self.known_blocks[key]

    def read(self):
        """test -> (how it ended, seconds, {file: set of lines}); not of tests that were built since. `code` is all lines that
        have code."""
        found, self.code = {}, {}
        for path in self.notes.glob("*.json"):
            note = json.loads(path.read_text())
            program = self.base.tree / self.base.tests.get(note["test"], "-")
            if not program.exists() or program.stat().st_mtime > path.stat().st_mtime:
                continue
            found[note["test"]] = (note["status"], note["seconds"], {f: set(lines) for f, lines in note["lines"].items()})
            for file, lines in note["code"].items():
                self.code.setdefault(file, set()).update(lines)
        return found
