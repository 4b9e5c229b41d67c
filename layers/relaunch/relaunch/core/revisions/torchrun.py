"""What torchrun needs of a container to let its workers save on SIGTERM.

torchrun passes SIGTERM to its workers and kills them 30 seconds later, whatever `stopTimeout` is
(pytorch/pytorch#119856). From torch 2.12 on, TORCH_ELASTIC_SHUTDOWN_TIMEOUT is that time in seconds; older versions
ignore the variable. While it waits for its peers it has no handler for SIGTERM, which Linux therefore discards for the
first process of a container (pid_namespaces(7)): an init process in its place passes the signal on.
"""

import re
from collections.abc import Sequence

SHUTDOWN_TIMEOUT = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
"""The variable with the seconds from SIGTERM until torchrun kills its workers."""
USUAL_SHUTDOWN_SECONDS = 30
"""These seconds without the variable, and of torch before 2.12 with it."""
# What torchrun needs to end after its workers, before SIGKILL.
_MARGIN_SECONDS = 5

_TORCHRUN = re.compile(r"(^|[\s/;&|(])torchrun($|\s)|\btorch\.distributed\.(run|launch)\b")
_SHELL = re.compile(r"(.*/)?(ba|da|z|k|a)?sh")
_EXEC = re.compile(r"\bexec\s")


def runs_torchrun(command: Sequence[str]) -> bool:
    """Return whether a command line starts torchrun, by itself or from a shell."""
    return any(_TORCHRUN.search(each) for each in command)


def has_shell_before(command: Sequence[str]) -> bool:
    """Return whether a shell stays between ECS and what a command line starts.

    An init process would end such a container at once: a shell that is not the first process dies of SIGTERM.
    """
    starts_shell = bool(command) and _SHELL.fullmatch(command[0]) is not None
    return starts_shell and not any(_EXEC.search(each) for each in command[1:])


def shutdown_seconds(stop_timeout_seconds: int) -> int:
    """Return how long torchrun may wait for its workers so that it ends before SIGKILL, 0 for no time at all."""
    return max(stop_timeout_seconds - _MARGIN_SECONDS, 0)
