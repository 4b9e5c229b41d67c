"""Whether a training gets SIGTERM, and has the time to save after it.

A process that is PID 1 and installs no handler ignores SIGTERM, and a shell does not pass it on to what it started
("JSON arguments recommended for ENTRYPOINT/CMD", Docker build checks).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from relaunch.core.checks import Check, is_ok, problem, unknown
from relaunch.core.revisions.revision import STOP_TIMEOUT_SECONDS, StopTimeout

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_SEPARATORS = re.compile(r"&&|\|\||[;|\n]|(?<![<>&0-9])&(?![>&0-9])")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)
_TRAP = re.compile(r"\btrap\b.*\b(?:SIG)?TERM\b", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MainProcess:
    """What a container runs: its `entryPoint` and `command`, and whether an init process is before them."""

    entry_point: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    has_init: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """The whole command line, without the image's entry point if the container sets none."""
        return (*self.entry_point, *self.command)


def check_sigterm(definition: str, process: MainProcess) -> Check:
    """Check that SIGTERM reaches the training, as far as the task definition says what runs."""
    name = f"{definition}: SIGTERM"
    arguments = process.arguments
    if not arguments:
        return is_ok(name, "the image's own command runs, which is not read here")
    shell = arguments[0].rpartition("/")[2]
    if shell in _SHELLS:
        return _check_shell(name, shell, arguments[1:], has_init=process.has_init)
    beside = "" if process.entry_point else ", unless the image's entry point is a shell"
    return is_ok(name, f"it reaches {arguments[0]}{beside}")


def _check_shell(name: str, shell: str, options: Sequence[str], *, has_init: bool) -> Check:
    script = _script(options)
    if script is None:
        file = next((each for each in options if not each.startswith("-")), "its script")
        return unknown(name, f"{shell} runs {file}, which is not read here", f"end {file} with `exec` and the training")
    if _TRAP.search(script):
        return unknown(name, f"a trap of {shell} has to pass it on: {script!r}", "see that it does, and waits")
    bare = _QUOTED.sub("''", script).strip()
    *before, last = [part.strip() for part in _SEPARATORS.split(bare) if part.strip()] or [""]
    if last.split(maxsplit=1)[:1] == ["exec"]:
        return is_ok(name, f"{shell} replaces itself with the training (exec)")
    init = "; the init process passes it to the shell alone" if has_init else ""
    to_do = "register a revision whose last command begins with `exec`, as in sh -c 'exec python train.py'"
    if before or last != bare:
        text = f"{shell} swallows it, and the training is killed without saving{init}: {script!r}"
        return problem(name, text, to_do)
    text = f"{shell} -c with one command: some shells replace themselves with it, others swallow SIGTERM{init}"
    return unknown(name, text, to_do)


def _script(options: Sequence[str]) -> str | None:
    """Return what follows `-c`, also in `-lc` and `-euo pipefail -c`; None if a file is run."""
    for place, option in enumerate(options[:-1]):
        if option.startswith("-") and not option.startswith("--") and option.endswith("c"):
            return options[place + 1]
    return None


def check_stop_timeout(definition: str, timeout: StopTimeout) -> Check:
    """Check that a training with a checkpoint has what a spot warning leaves it to save in."""
    name = f"{definition}: stopTimeout"
    if timeout.is_own and timeout.seconds < STOP_TIMEOUT_SECONDS:
        text = f"{timeout.seconds} s to save in, where a spot warning leaves about {STOP_TIMEOUT_SECONDS}"
        to_do = (
            f"register a revision without `stopTimeout`: Relaunch sets {STOP_TIMEOUT_SECONDS} s, or set more yourself"
        )
        return problem(name, text, to_do)
    return is_ok(name, str(timeout))
