"""The command gh as a script that keeps what it is called with, and answers what a test says."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

_SCRIPT = """#!{python}
import json, pathlib, sys
folder = pathlib.Path({folder!r})
calls = folder / "calls.json"
body = sys.stdin.read()
known = json.loads(calls.read_text()) if calls.exists() else []
calls.write_text(json.dumps([*known, {{"arguments": sys.argv[1:], "body": json.loads(body) if body else None}}]))
failure = folder / "failure"
if failure.exists():
    print(failure.read_text(), file=sys.stderr)
    sys.exit(1)
method = sys.argv[sys.argv.index("--method") + 1]
print((folder / "hooks.json").read_text() if method == "GET" else '{{"id": 7}}')
"""


class FakeGh:
    """A gh on the PATH of this process; `hooks` are those of the repository."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, hooks: Any = ()) -> None:
        self._folder = folder / "gh"
        self._folder.mkdir()
        script = self._folder / "gh"
        script.write_text(_SCRIPT.format(python=sys.executable, folder=str(self._folder)))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        (self._folder / "hooks.json").write_text(hooks if isinstance(hooks, str) else json.dumps(list(hooks)))
        monkeypatch.setenv("PATH", str(self._folder), prepend=":")

    def fail(self, reason: str) -> None:
        (self._folder / "failure").write_text(reason)

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        """Method, path and body of each call."""
        found = json.loads((self._folder / "calls.json").read_text())
        return [(each["arguments"][2], each["arguments"][3], each["body"]) for each in found]

    @property
    def text(self) -> str:
        """All arguments, which anybody on the machine can see."""
        return " ".join(" ".join(each["arguments"]) for each in json.loads((self._folder / "calls.json").read_text()))
