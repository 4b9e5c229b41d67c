"""Runs code in processes that are forked from one with the packages of the functions, where only calls are recorded.

A fresh interpreter imports for a second what every function has, and what its events need. What a function keeps is
made by its own handler, in the forked process, so its calls are those of a cold start.
"""

import json
import subprocess
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from benchmarks.fresh_process import interpreter

_SERVER = """
import importlib, json, os, sys, traceback
for name in ("aws_lambda_powertools", "botocore.session", "relaunch.bootstrap"):
    importlib.import_module(name)
for modules in importlib.import_module("relaunch.late_parts").ALWAYS.values():
    for name in modules:
        importlib.import_module(name)
library = [each for each in sys.path if each not in os.environ["PYTHONPATH"].split(os.pathsep)]
for line in sys.stdin:
    job = json.loads(line)
    process = os.fork()
    if not process:
        os.environ.clear()
        os.environ.update(job["environment"])
        sys.path[:] = job["environment"]["PYTHONPATH"].split(os.pathsep) + library
        sys.stdin.close()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what functions log
        failed = 1
        try:
            exec(job["code"], {"__name__": "__main__"})
            failed = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(failed)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


class ForkServer:
    """Forks processes one after the other; it ends with the context."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start it with the environment of a function that has all layers."""
        self._server = subprocess.Popen(
            [interpreter(), "-S", "-c", _SERVER],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, environment: Mapping[str, str]) -> None:
        """Run code in a process with this environment, of which PYTHONPATH is the only path but the library's.

        Raises:
            subprocess.CalledProcessError: the code failed; standard error says why.
        """
        assert self._server.stdin is not None  # noqa: S101 - for the type checker: both are pipes
        assert self._server.stdout is not None  # noqa: S101
        self._server.stdin.write(json.dumps({"code": code, "environment": dict(environment)}) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline().strip()
        if answer != "0":
            raise subprocess.CalledProcessError(int(answer or -1), interpreter())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server.stdin is not None:
            self._server.stdin.close()
        self._server.wait()
        if self._server.stdout is not None:
            self._server.stdout.close()
