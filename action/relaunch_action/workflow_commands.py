"""What a step tells the runner: lines of its log, annotations, outputs and the summary.

The runner executes every line that begins with `::`, and `##[` anywhere in a line ("Workflow commands for GitHub
Actions", GitHub Docs; ActionCommand.cs of actions/runner). Texts of jobs and errors come from elsewhere: all of them
pass `plain`, and lines of the log begin with a word of ours.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

_LONGEST = 2_000


def plain(text: str) -> str:
    """Return a text as one line that is not too long, without control characters or the runner's older mark."""
    line = "".join(each if each.isprintable() else " " for each in text)
    line = line.replace("##[", "## [")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


class Runner:
    """Writes for the runner of this step; the files are those that it names in variables."""

    def __init__(self, environment: Mapping[str, str], output: TextIO = sys.stdout) -> None:
        """Write to the files of these variables and to `output`."""
        self._environment = environment
        self._output = output

    def log(self, text: str) -> None:
        """Write a line to the log."""
        self._write(f"relaunch: {plain(text)}")

    def error(self, text: str) -> None:
        """Annotate the workflow run with an error."""
        self._write(f"::error title=Relaunch::{_escape(plain(text))}")

    def warning(self, text: str) -> None:
        """Annotate the workflow run with a warning."""
        self._write(f"::warning title=Relaunch::{_escape(plain(text))}")

    def mask(self, secret: str) -> None:
        """Let the runner replace a secret in everything that it logs from now on."""
        self._write(f"::add-mask::{_escape(secret)}")

    def set_outputs(self, outputs: Mapping[str, str]) -> None:
        """Set outputs of the step."""
        # No text can contain the delimiter: it is drawn now.
        end = f"relaunch-{uuid.uuid4()}"
        self._append(
            "GITHUB_OUTPUT", "".join(f"{name}<<{end}\n{plain(text)}\n{end}\n" for name, text in outputs.items())
        )

    def summarize(self, markup: str) -> None:
        """Add to the summary of the workflow run's job, which shows HTML."""
        self._append("GITHUB_STEP_SUMMARY", f"{markup}\n\n")

    def _append(self, variable: str, text: str) -> None:
        file = self._environment.get(variable)
        if not file:
            self._write(f"relaunch: the runner names no file in {variable}: nothing is written to it")
            return
        with Path(file).open("a", encoding="utf-8", errors="replace", newline="\n") as opened:
            opened.write(text)

    def _write(self, line: str) -> None:
        self._output.write(f"{line}\n")
        self._output.flush()


def _escape(data: str) -> str:
    return data.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
