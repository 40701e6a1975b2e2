"""Running one test as `make check` does, with a library of one's own, a deadline, and nobody left behind."""
import os
import shutil
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

SKIPPED = 77


@dataclass
class Result:
    status: str  # "passed", "failed", "hung"
    seconds: float
    output: str


def end_all(mark):
    """Kills what is left of a test: programs and workers, also in groups of their own; they have its mark in their
    environment."""
    for _ in range(3):
        found = False
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            try:
                if mark in Path(entry.path, "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
                    found = True
            except OSError:
                continue
        if not found:
            return


class Runner:
    def __init__(self, base):
        self.base = base
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("SHMTRAIN_", "MAKE", "MFLAGS"))}
        if "SHMTRAIN_DATA_DIR" in os.environ:
            self.environment["SHMTRAIN_DATA_DIR"] = os.environ["SHMTRAIN_DATA_DIR"]

    def run(self, test, library, program, deadline, more=None):
        mark = uuid.uuid4().hex
        temporary = self.base.work / "tmp" / mark
        temporary.mkdir(parents=True)
        temporary.chmod(0o755)
        environment = {**self.environment, "TEST_SRCDIR": str(self.base.tree), "TEST_BUILDDIR": str(self.base.tree),
                       "TEST_CC": "gcc", "TEST_CXX": "", "TEST_CFLAGS": "-O1", "LD_LIBRARY_PATH": str(library),
                       "MUTANTS_RUN": mark, "TMPDIR": str(temporary), **(more or {})}
        out = temporary / "output"
        begun = time.monotonic()
        with open(out, "wb") as f:
            process = subprocess.Popen([str(program)], cwd=self.base.tree, env=environment, stdin=subprocess.DEVNULL, stdout=f,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = process.wait(deadline)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code = None
        seconds = time.monotonic() - begun
        end_all(mark.encode())
        text = out.read_text(errors="replace")[-20000:]
        shutil.rmtree(temporary, ignore_errors=True)
        status = "hung" if code is None else "passed" if code in (0, SKIPPED) else "failed"
        return Result(status, seconds, text)
