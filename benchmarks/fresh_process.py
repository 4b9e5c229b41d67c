"""Measures fresh processes: time to the response, and peak memory."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from statistics import median
from typing import NamedTuple

from relaunch_local.repository import REPOSITORY

# The memory is read after the times are taken. VmHWM: the peak resident set size in KiB (proc(5)).
TAIL = """
import time
used = time.process_time()
print("answered", flush=True)
print(used, *[line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")])
"""


class Sample(NamedTuple):
    """A fresh process: milliseconds to its response, processor time to it, peak memory."""

    milliseconds: float
    processor_milliseconds: float
    peak_mib: float


def medians(samples: Iterable[Sample]) -> Sample:
    """Return the median of each measurement."""
    return Sample(*map(median, zip(*samples, strict=True)))


def interpreter() -> str:
    """Return the interpreter without its virtual environment, as on Lambda."""
    return str(getattr(sys, "_base_executable", sys.executable))


def measure(code: str, environment: Mapping[str, str]) -> Sample:
    """Run code in a fresh interpreter until it has responded.

    It runs without `site`, so that packages of this machine's interpreter are not loaded.

    Raises:
        subprocess.CalledProcessError: the code failed.
    """
    started = time.perf_counter()
    with subprocess.Popen(
        [interpreter(), "-S", "-c", code + TAIL], env=environment, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None  # noqa: S101 - for the type checker: it is a pipe
        while (line := child.stdout.readline()) and line != "answered\n":
            pass
        milliseconds = (time.perf_counter() - started) * 1000
        rest = child.stdout.read().split()
    if child.returncode or len(rest) != 2:
        raise subprocess.CalledProcessError(child.returncode, interpreter())
    return Sample(milliseconds, float(rest[0]) * 1000, int(rest[1]) / 1024)


def own_environment() -> dict[str, str]:
    """Return this environment with our packages on Python's path."""
    path = os.pathsep.join(map(str, (REPOSITORY, REPOSITORY / "layers" / "relaunch")))
    return {**os.environ, "PYTHONPATH": path}


def aws_environment(url: str, ca_bundle: str, *python_path: str) -> dict[str, str]:
    """Return the environment variables that Lambda sets, with AWS at `url`."""
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
        # Lambda has no configuration files and no metadata service.
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": "/nonexistent",
    }
