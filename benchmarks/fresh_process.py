"""Measures fresh processes: how long until they have answered, and the most memory they had."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

# The memory is read after the clock was stopped. VmHWM: the process's largest resident size so far, in KiB (proc(5)).
TAIL = """
print("answered", flush=True)
print(*[line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")])
"""


class Sample(NamedTuple):
    """One fresh process: milliseconds to its answer, processor time to its end, and the most memory it had."""

    milliseconds: float
    processor_milliseconds: float
    peak_mib: float


def interpreter() -> str:
    """Return the interpreter without its virtual environment: Lambda has none either."""
    return str(getattr(sys, "_base_executable", sys.executable))


def measure(code: str, environment: Mapping[str, str]) -> Sample:
    """Run code in a fresh interpreter until it says that it has answered.

    It runs without `site`: what is installed beside this machine's interpreter, and is started with it, is not ours.

    Raises:
        subprocess.CalledProcessError: it failed; standard error says why.
    """
    started, used = time.perf_counter(), measure_children()
    with subprocess.Popen(
        [interpreter(), "-S", "-c", code + TAIL], env=environment, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None  # noqa: S101 - for the type checker: it is a pipe
        while (line := child.stdout.readline()) and line != "answered\n":
            pass
        milliseconds = (time.perf_counter() - started) * 1000
        rest = child.stdout.read()
    if child.returncode or not rest:
        raise subprocess.CalledProcessError(child.returncode, interpreter())
    return Sample(milliseconds, (measure_children() - used) * 1000, int(rest) / 1024)


def measure_children() -> float:
    """Return the seconds of processor time that ended child processes used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def aws_environment(url: str, ca_bundle: str, *python_path: str) -> dict[str, str]:
    """Return what a function finds in its environment of AWS, with AWS at `url`."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(python_path),
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
        "AWS_CA_BUNDLE": ca_bundle,
        "AWS_ENDPOINT_URL": url,
        # Lambda has no configuration files and asks no metadata service.
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": "/nonexistent",
    }
