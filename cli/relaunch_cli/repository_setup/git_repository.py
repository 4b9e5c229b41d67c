"""The git repository that a training is in."""

import re
import subprocess
from pathlib import Path

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.findings import GitRepository

# git only reads its own files here; a network file system may hang.
_SECONDS = 10
_GITHUB = re.compile(
    r"(?:https://(?:[^/@]+@)?github\.com/|(?:ssh://)?git@github\.com[:/])([^/\s]+/[^/\s]+?)(?:\.git)?/?"
)


def find_repository(folder: Path) -> GitRepository:
    """Return the repository that a folder is in.

    Raises:
        CommandError: it is in none.
    """
    root = _git(folder, "rev-parse", "--show-toplevel")
    if not root:
        raise CommandError(
            f"{folder} is in no git repository", "go to that of your training, or make one there: git init"
        )
    return GitRepository(Path(root), github_name(_git(folder, "config", "--local", "--get", "remote.origin.url")))


def find_commit(folder: Path) -> tuple[str, str]:
    """Return OWNER/NAME at GitHub and the commit of a clone; both empty if it is not at GitHub."""
    github = github_name(_git(folder, "config", "--local", "--get", "remote.origin.url"))
    commit = _git(folder, "rev-parse", "HEAD")
    return (github, commit) if github and commit else ("", "")


def github_name(remote: str) -> str:
    """Return OWNER/NAME of the URL of a remote, empty if that is not at GitHub."""
    match = _GITHUB.fullmatch(remote)
    return match[1] if match else ""


def _git(folder: Path, *arguments: str) -> str:
    """Return the output of a git command, empty if it fails."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the arguments are ours
            command, capture_output=True, text=True, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
