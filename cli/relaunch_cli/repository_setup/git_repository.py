"""The git repository that a training is in."""

import re
import subprocess
from pathlib import Path

from relaunch.core.definitions.definition import GITHUB_REPOSITORY_PATTERN
from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.findings import GitRepository

# git only reads its own files here; a network file system may hang.
_SECONDS = 10
_GITHUB = re.compile(
    r"(?:https://(?:[^/@]+@)?(?:www\.)?github\.com(?::443)?/|ssh://[^/@]+@(?:ssh\.)?github\.com(?::[0-9]+)?/"
    r"|[^/@:]+@(?:ssh\.)?github\.com:)([^/\s]+/[^/\s]+?)(?:\.git)?/?",
    re.IGNORECASE,
)


def find_repository(folder: Path) -> GitRepository:
    """Return the repository that a folder is in.

    Raises:
        CommandError: it is in none.
    """
    root, reason = _run(folder, "rev-parse", "--show-toplevel")
    if not root:
        raise CommandError(
            f"{folder} is in no git repository that can be used: {reason}",
            "go to that of your training, or make one there: git init",
        )
    remote = _git(folder, "remote", "get-url", "origin")
    branch = _git(folder, "symbolic-ref", "--short", "HEAD")
    return GitRepository(Path(root), github_name(remote), branch)


def find_commit(folder: Path) -> tuple[str, str]:
    """Return OWNER/NAME at GitHub and the commit of a clone; both empty if it is not at GitHub."""
    github = github_name(_git(folder, "remote", "get-url", "origin"))
    commit = _git(folder, "rev-parse", "HEAD")
    return (github, commit) if github and commit else ("", "")


def find_head(folder: Path) -> tuple[str, bool]:
    """Return the commit that is checked out, and whether files differ from it or are not in it.

    Raises:
        CommandError: there is no commit yet.
    """
    commit, reason = _run(folder, "rev-parse", "--verify", "HEAD")
    if not commit:
        raise CommandError(f"there is no commit in {folder} yet: {reason}", "git add … && git commit …, then again")
    return commit, bool(_git(folder, "status", "--porcelain"))


def write_archive(folder: Path, commit: str, archive: Path) -> None:
    """Write the files of a commit into a tar archive.

    Raises:
        CommandError: git cannot do that.
    """
    _, reason = _run(folder, "archive", "--format=tar", f"--output={archive}", commit)
    if reason:
        raise CommandError(f"the files of {commit} cannot be read: {reason}")


def github_name(remote: str) -> str:
    """Return OWNER/NAME of the URL of a remote, empty if that is not at GitHub, or no name that GitHub gives.

    The name becomes part of files and of requests.
    """
    match = _GITHUB.fullmatch(remote)
    return match[1] if match and re.fullmatch(GITHUB_REPOSITORY_PATTERN, match[1]) else ""


def _git(folder: Path, *arguments: str) -> str:
    """Return the output of a git command, empty if it fails."""
    return _run(folder, *arguments)[0]


def _run(folder: Path, *arguments: str) -> tuple[str, str]:
    """Return the output of a git command, and if it fails why."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the arguments are ours
            command,
            capture_output=True,
            # Names of folders and remotes are bytes to git.
            encoding="utf-8",
            errors="backslashreplace",
            timeout=_SECONDS,
            check=False,
        )
    except OSError as error:
        return "", f"git cannot be run ({error.strerror})"
    except subprocess.TimeoutExpired:
        return "", "git does not answer"
    if done.returncode != 0:
        return "", next(iter(done.stderr.strip().splitlines()), "git fails")
    return done.stdout.strip(), ""
