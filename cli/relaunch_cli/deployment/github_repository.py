"""The numbers that GitHub has for a repository and its owner, which new repositories have in their tokens' subjects."""

import json
import shutil
import subprocess
import urllib.request
from dataclasses import dataclass

_API = "https://api.github.com"
_SECONDS = 15


@dataclass(frozen=True, slots=True)
class RepositoryIds:
    """The number of the owner, and that of the repository."""

    owner: str
    repository: str


def find_repository_ids(repository: str) -> RepositoryIds | None:
    """Ask GitHub, by `gh` if it is there, which may see private repositories; None if neither answers."""
    path = f"repos/{repository}"
    for ask in (_ask_gh, _ask_api):
        text = ask(path)
        try:
            found = json.loads(text)
            return RepositoryIds(str(int(found["owner"]["id"])), str(int(found["id"])))
        except (ValueError, KeyError, TypeError):
            continue
    return None


def _ask_gh(path: str) -> str:
    if shutil.which("gh") is None:
        return ""
    command = ["gh", "api", path]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="backslashreplace", check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _ask_api(path: str) -> str:
    request = urllib.request.Request(f"{_API}/{path}", headers={"User-Agent": "relaunch"})  # noqa: S310 - it is https
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
            return str(response.read().decode())
    except (OSError, ValueError):
        return ""
