"""What GitHub knows about a repository: name, branch, and numbers, which tokens of new ones have in their subjects."""

import json
import shutil
import subprocess
import urllib.request
from dataclasses import dataclass

_API = "https://api.github.com"
_SECONDS = 15
# That of the templates' GitHubRef.
_DEFAULT_BRANCH = "main"


@dataclass(frozen=True, slots=True)
class RepositoryIds:
    """The number of the owner, and that of the repository.

    `full_name` is OWNER/NAME in the case that its tokens have, and the new one of a repository that was renamed;
    `default_branch` is the one that people push to. Both are empty where GitHub does not say them.
    """

    owner: str
    repository: str
    full_name: str = ""
    default_branch: str = ""

    def parameters_of(self, repository: str, ref: str) -> tuple[dict[str, str], list[str]]:
        """Return the parameters for a repository that was named so, and notes about them.

        `ref` is the branch or tag that is let in already, or is named; empty for none.
        """
        parameters = {"GitHubOwnerId": self.owner, "GitHubRepositoryId": self.repository}
        notes = []
        if self.full_name not in ("", repository):
            parameters["GitHubRepository"] = self.full_name
            notes.append(
                f"GitHub calls {repository} {self.full_name}, and so do its tokens: IAM compares them letter by letter"
            )
        if not ref and self.default_branch not in ("", _DEFAULT_BRANCH):
            parameters["GitHubRef"] = f"refs/heads/{self.default_branch}"
            notes.append(f"{self.default_branch} is let in, the default branch of {repository}")
        return parameters, notes


def describe_environment(environment: str) -> str:
    """Return what to know of an environment whose jobs are let in."""
    return (
        f"the environment {environment} lets in what its rules at GitHub let through, and every branch if it has none: "
        "make it there, with the branches that may use it, before a workflow names it, for GitHub makes one that is "
        "missing without any rule"
    )


def find_repository_ids(repository: str) -> RepositoryIds | None:
    """Ask GitHub, by `gh` if it is there, which may see private repositories; None if neither answers."""
    path = f"repos/{repository}"
    for ask in (_ask_gh, _ask_api):
        text = ask(path)
        try:
            found = json.loads(text)
            return RepositoryIds(
                str(int(found["owner"]["id"])),
                str(int(found["id"])),
                str(found.get("full_name") or ""),
                str(found.get("default_branch") or ""),
            )
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
