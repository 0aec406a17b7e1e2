"""Processes of their own, on one thread whatever the machine has: of a single call, and that answer one by one.

    alone(work, task, limit=600)

runs a call where its memory is its own and a time limit can end it. Arguments and result travel as a pickle and as
JSON; the function is named by its module. `Served` is for other libraries, under interpreters of their own.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:  # other environments have older Pythons
    from typing import Self

#: For the environment of whatever is to run on one thread.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ROOT = Path(__file__).parents[2]


#: One thread for XLA too, and nothing kept from an earlier run.
XLA = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_ENABLE_COMPILATION_CACHE": "false",
    "JAX_PLATFORMS": "cpu",
}


class Crashed(Exception):
    """No answer: the process ended, was too late, or answered with an error."""


class OutOfTime(Crashed):
    """The process had used the CPU seconds that it may use."""


def alone(
    call: Callable[..., Any],
    *args: object,
    limit: float | None = None,
    cpu_limit: int | None = None,
    python: str | None = None,
) -> Any:
    """What the call returns, plain values. Raises Crashed.

    limit: seconds on the wall, after which TimeoutExpired. cpu_limit: CPU seconds of the process, all its threads
    together, after which OutOfTime. python: of another environment, which gets no variables of this one's, and in which
    the function's module can be imported.
    """
    environment = dict(os.environ)
    if python is not None:
        environment = {key: value for key, value in environment.items() if not key.startswith("PYTHON")} | XLA
    with tempfile.TemporaryDirectory(prefix="dpgm-alone-") as folder:
        given, answered = Path(folder, "given"), Path(folder, "answered")
        module = call.__module__ if call.__module__ != "__main__" else sys.modules["__main__"].__spec__.name
        given.write_bytes(pickle.dumps((module, call.__qualname__, args)))
        command = [python or sys.executable, "-m", "benchmarks.harness.alone", given, answered, str(cpu_limit or 0)]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment | ONE_THREAD,
            stdout=None if python is None else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=limit,
            check=False,
        )
        if done.returncode == -signal.SIGXCPU:
            raise OutOfTime(f"it used its {cpu_limit} CPU seconds")
        if done.returncode or not answered.is_file():
            lines = [line for line in done.stderr.splitlines() if any(map(str.isalpha, line))]
            said = (lines or ["nothing"])[-1].strip()
            raise Crashed(f"it ended with code {done.returncode} and said: {said}")
        return json.loads(answered.read_text(encoding="utf-8"))


class Served:
    """A process that answers each JSON document on a line with another one; it starts when it is first asked.

    A context, and what a process holds ends with it. After a crash the next question starts another process.
    """

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        self._command, self._environment = command, environment
        self.process: subprocess.Popen[str] | None = None
        self._told: IO[str] | None = None  # what it says on stderr

    def ask(self, request: Mapping[str, object], limit: float | None = None) -> dict[str, Any]:
        """Return the answer, within so many seconds on the wall. Raises Crashed; OSError without a program."""
        if self.process is None:
            self._told = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by `end`
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._told, text=True,
                env=dict(self._environment), cwd=ROOT,
            )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None and self._told is not None
        with suppress(BrokenPipeError):  # it has ended, which the empty line says
            print(json.dumps(request), file=self.process.stdin, flush=True)
        ready = limit is None or select.select([self.process.stdout], [], [], limit)[0]
        try:
            answer: dict[str, Any] = json.loads(self.process.stdout.readline() if ready else "")
        except json.JSONDecodeError:
            self._told.seek(0)
            said = (self._told.read().strip().splitlines() or ["nothing said"])[-1]
            self.end()
            raise Crashed(f"its process ended: {said}" if ready else f"took more than {limit:.0f} s") from None
        if "error" in answer:
            raise Crashed(answer["error"])
        return answer

    def end(self) -> None:
        """End the process."""
        if self.process is not None:
            with suppress(BrokenPipeError), self.process:  # closes what leads there, and waits
                self.process.kill()
            self.process = None
        if self._told is not None:
            self._told.close()
            self._told = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def peak_megabytes(pid: int | str = "self") -> float:
    """The most memory a process has had since it became its program, 0 once it has ended; 1 MB is 10**6 bytes."""
    try:
        # ru_maxrss counts what the process was before it became this program too.
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        return (
            next((1024 * float(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0) / 1e6
        )
    except OSError:
        if pid != "self" or Path("/proc/self").exists():
            return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


if __name__ == "__main__":
    if int(sys.argv[3]):
        resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[3]), resource.RLIM_INFINITY))
    home, function, arguments = pickle.loads(Path(sys.argv[1]).read_bytes())
    Path(sys.argv[2]).write_text(json.dumps(getattr(import_module(home), function)(*arguments)), encoding="utf-8")
