"""Building the library and its tests once, and then again with one source changed.

The base build is the project's own (configure, make), but with the library as one shared object, libmut.so, that the tests load
when they start: a mutant takes the compilation of what depends on the changed file and one link. Tests for which that is not
enough are linked again, too: those that compile a source of the library, or that include a changed header. Tests with functions
that stand before the library's (--wrap) load a libmut.so of their own, linked with the same words.
"""
import filecmp
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOMS = ("src/sync", "src/consistency", "src/update", "src/ps", "src/backends/shm")
LIBRARIES = ("-lhwloc", "-lxxhash", "-ljansson", "-larchive", "-lm")
CFLAGS = "-O1 -w -fPIC -fvisibility=default"


# What configure and make leave in a tree.
BUILT = re.compile(r"(^|/)(\.libs|\.deps|autom4te\.cache)/|\.(o|lo|la|a|log|trs)$|^(Makefile|config\.status|config\.log|libtool|shmtrain\.pc)$")


class Failed(Exception):
    """What cannot be built, with the compiler's words."""


def call(command, folder, log=None, **more):
    """Runs it; what it says goes to the end of the log as it comes."""
    with open(log, "a+") if log else tempfile.TemporaryFile("w+") as out:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, **more)
        if done.returncode != 0:
            out.seek(0)
            words = shlex.join(map(str, command))
            raise Failed("\n".join([f"... {words[-200:]}: exit status {done.returncode}", *out.read().splitlines()[-15:]]))


def copy_sources(source, target):
    """What git knows of, as it is at the moment; without git all files. Returns what was not there like that."""
    try:
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=source, check=True,
                               capture_output=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = [str(path.relative_to(source)) for path in source.glob("**/*") if not BUILT.search(str(path.relative_to(source)))]
    changed = []
    for name in filter(None, names):
        there, here = source / name, target / name
        if not there.is_file() or here.exists() and filecmp.cmp(there, here, shallow=False):
            continue
        here.parent.mkdir(parents=True, exist_ok=True)
        here.unlink(missing_ok=True)
        shutil.copy(there, here)
        changed.append(name)
    return changed


def words_of(line):
    """A command that make has printed, as words; automake's way to find a source in another folder is taken out."""
    line = re.sub(r"`test -f '([^']*)' \|\| echo '\./'`", "", line)
    return shlex.split(line.rstrip("\\").rstrip().removesuffix("&&"))


def without_dependencies(words):
    out, i = [], 0
    while i < len(words):
        if words[i] in ("-MT", "-MF"):
            i += 1
        elif words[i] not in ("-MD", "-MP"):
            out.append(words[i])
        i += 1
    return out


ARCHIVE = {".libs/libcore.a", "./.libs/libcore.a"}  # as make and libtool name it


def is_link(line):
    """By libtool, for a library and what is installed; by the compiler itself, for tests."""
    if line.startswith("libtool: link: "):
        return " -o " in line
    return " -o " in line and " -c " not in line and "libtool" not in line and re.match(r"(ccache )?g?cc ", line) is not None


class Base:
    """The build that mutants start from."""

    def __init__(self, source, work, jobs):
        self.source, self.work, self.jobs = Path(source), Path(work), jobs
        self.tree = self.work / "base"
        self.log = self.work / "build.log"

    def make(self):
        """Once in each work folder, and again for what has changed since. Returns whether the library has changed."""
        pending, library_changed = self.work / "pending", False
        self.tree.mkdir(parents=True, exist_ok=True)
        changed = copy_sources(self.source, self.tree)
        if changed:
            with open(pending, "a") as f:
                f.write("\n".join(changed) + "\n")
        if pending.exists():
            library_changed = any(name.startswith(("src/", "include/")) for name in pending.read_text().split("\n"))
            self.make_all()
            shutil.rmtree(self.work / "traced", ignore_errors=True)
            pending.unlink()
        self.read_log()
        self.find_tests()
        self.find_dependents()
        return library_changed

    def make_all(self):
        if not (self.tree / "configure").exists():
            call(["autoreconf", "-i"], self.tree)
        configured = self.work / "configured"
        if not configured.exists():
            cc = "ccache gcc" if shutil.which("ccache") else "gcc"
            call(["./configure", "-q", f"CC={cc}", f"CFLAGS={CFLAGS}", "LDFLAGS=-Wl,--export-dynamic", "--disable-shared"],
                 self.tree)
            configured.touch()
        make = ["make", f"-j{self.jobs}", "-Otarget", "V=1"]
        call([*make, "libcore.la"], self.tree, self.log)
        self.read_log()
        self.link(self.tree, self.library)
        library = " ".join([str(self.tree / "libmut.so"), *LIBRARIES])
        call([*make, "check-programs", f"TEST_LIBS={library} -lcmocka", f"PUBLIC_LIBS={library}"], self.tree, self.log,
             env={**os.environ, "LD_LIBRARY_PATH": str(self.tree)})
        self.read_log()
        for program in self.static:  # named the archive where others name TEST_LIBS
            call(self.links[program], self.tree)

    # ---- what make has done ----

    def read_log(self):
        """compile: object -> command without its output; links: program -> words; objects are paths below the tree."""
        self.compile, self.links, self.static = {}, {}, set()
        for line in self.log.read_text().splitlines():
            if is_link(line):
                words = words_of(line.removeprefix("libtool: link: "))
                if ARCHIVE & set(words):
                    self.static.add(words[words.index("-o") + 1])
                    words = [str(self.tree / "libmut.so") if w in ARCHIVE else w for w in words]
                self.links[words[words.index("-o") + 1]] = words
            elif " -c " in line and (line.startswith("libtool: compile: ") or "--mode=compile" not in line and "-MT" in line):
                words = without_dependencies(words_of(line.removeprefix("libtool: compile: ")))
                if "-o" not in words:
                    continue
                at = words.index("-o")
                self.compile[words[at + 1]] = words[:at] + words[at + 2 :]
        # All that the library consists of, by where it is.
        self.library = sorted(o for o in self.compile if o.startswith("src/") and not o.startswith("src/cli/")
                              and not Path(o).name.startswith("tests_"))

    def find_tests(self):
        """All test programs that `make check` runs: name -> the program that is linked for it (parts of one have other names)."""
        listed = subprocess.run(
            ["make", "-s", "-f", "-", "mutants-print"], cwd=self.tree, text=True, capture_output=True, check=True,
            input="include Makefile\nmutants-print:\n\t@echo $(TESTS)\n").stdout.split()
        self.tests = {}
        for name in listed:
            path = self.tree / name
            if name in self.links:
                self.tests[name] = name
            elif (whole := next((p for p in self.links if (self.tree / p).exists() and path.samefile(self.tree / p)), None)):
                self.tests[name] = whole
        self.rooms_tests = {}  # room -> tests that its own fragment names
        for room in ROOMS:
            folder = self.tree / room
            fragment = folder / "room.am" if (folder / "room.am").exists() else folder.parent / "room.am"
            text = fragment.read_text()
            self.rooms_tests[room] = {t for t in self.tests if re.search(rf"{re.escape(self.tests[t])}(?!\w)", text)}

    def find_dependents(self):
        """dependents: source or header -> objects that must be compiled again for it."""
        self.dependents = {}
        for note in self.tree.glob("**/.deps/*.[PT]*o"):
            text = note.read_text()
            folder = note.parent.parent.relative_to(self.tree)
            target = str(folder / (note.stem + ".o"))
            if target not in self.compile:
                continue
            for name in set(re.findall(r"[^\s:\\]+\.[ch]\b", text)):
                name = os.path.normpath(name)
                if name.startswith("src/"):
                    self.dependents.setdefault(name, set()).add(target)

    def own_objects(self, program):
        return [w for w in self.links[program] if w.endswith(".o")]

    def wraps(self, program):
        return tuple(w for w in self.links[program] if "--wrap" in w)

    # ---- linking ----

    def link(self, folder, objects, wraps=(), libraries=()):
        """libmut.so of these in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        names = folder / "objects"
        names.write_text("\n".join(map(str, objects)))
        call(["gcc", "-shared", "-o", folder / "libmut.so", "-Wl,-soname,libmut.so", *wraps, f"@{names}", *libraries,
              *LIBRARIES, "-ldl", "-pthread"], self.tree)

    def link_program(self, folder, library, program, changed):
        """A test program with some of its objects changed; returns where it is."""
        target = folder / "bin" / program
        target.parent.mkdir(parents=True, exist_ok=True)
        words = [str(changed.get(w, w)) for w in self.links[program]]
        words[words.index("-o") + 1] = str(target)
        call([str(library) if w.endswith("/libmut.so") else w for w in words], self.tree)
        return target


class Farm:
    """A copy of the sources made of links, in which one file is another, and the objects that come of it."""

    def __init__(self, base, folder):
        self.base, self.folder, self.tree = base, Path(folder), Path(folder) / "tree"
        shutil.rmtree(self.tree, ignore_errors=True)
        for root, folders, files in os.walk(base.tree / "src"):
            folders[:] = [f for f in folders if f not in (".deps", ".libs")]
            here = self.tree / Path(root).relative_to(base.tree)
            here.mkdir(parents=True)
            for name in files:
                if name.endswith((".c", ".h")):
                    (here / name).symlink_to(Path(root) / name)
        for name in ("include", "tests", "fuzz", "examples", "bench"):
            (self.tree / name).symlink_to(base.tree / name)

    def compile(self, objects, more=(), instead=None):
        """object -> file."""
        made = {}
        for o in objects:
            target = self.folder / "objects" / o
            target.parent.mkdir(parents=True, exist_ok=True)
            words = self.base.compile[o]
            if instead:
                words = [instead.get(w, w) for w in words]
            call([*words, *more, "-o", str(target)], self.tree)
            made[o] = target
        return made

    def compile_once(self, o, more):
        """The same, unless an earlier run has done it."""
        target = self.folder / "objects" / o
        if not target.exists():
            try:
                self.compile([o], more)
            except BaseException:
                target.unlink(missing_ok=True)
                raise
        return target

    def put(self, file, text):
        path = self.tree / file
        path.unlink()
        path.write_text(text)

    def restore(self, file):
        path = self.tree / file
        path.unlink()
        path.symlink_to(self.base.tree / file)


class Variant:
    """Base, but for some objects of the library: which library and which program a test has to run with. Both are made when they
    are asked for; the farm compiles what a test has of its own."""

    def __init__(self, base, folder, changed, farm=None, own=(), libraries=()):
        self.base, self.folder, self.changed, self.libraries = base, Path(folder), dict(changed), libraries
        self.farm, self.own = farm, set(own)  # objects of tests that are to be compiled again
        self.linked, self.programs = {}, {}

    def library(self, test):
        wraps = self.base.wraps(self.base.tests[test])
        if wraps not in self.linked:
            folder = self.folder / f"lib{len(self.linked)}"
            objects = [self.changed.get(o, self.base.tree / o) for o in self.base.library]
            self.base.link(folder, objects, wraps, self.libraries)
            self.linked[wraps] = folder
        return self.linked[wraps]

    def program(self, test):
        name = self.base.tests[test]
        if name not in self.programs:
            self.programs[name] = self.make_program(test, name)
        path = self.programs[name]
        if test == name or path == self.base.tree / name:
            return path if test == name else self.base.tree / test
        part = path.parent / Path(test).name
        part.unlink(missing_ok=True)
        os.link(path, part)
        return part

    def make_program(self, test, name):
        objects = [o for o in self.base.own_objects(name) if o in self.own]
        for o in objects:
            if o not in self.changed:
                path = self.farm.compile([o])[o]
                self.changed[o] = self.base.tree / o if filecmp.cmp(self.base.tree / o, path, shallow=False) else path
        if all(self.changed[o] == self.base.tree / o for o in objects):
            return self.base.tree / name
        return self.base.link_program(self.folder, self.library(test) / "libmut.so", name, self.changed)


def identical(base, made):
    return all(filecmp.cmp(base.tree / o, path, shallow=False) for o, path in made.items())
