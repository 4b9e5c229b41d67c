"""Concurrency groups of a definition: of the jobs of one group one runs at a time, and the newest one wins.

The words are those of GitHub Actions ("Control the concurrency of workflows and jobs", GitHub Docs), the groups are
not: a group belongs to one definition, so that nobody's definition cancels jobs of another one by naming its group.
"""

import hashlib
import re
from collections.abc import Collection, Mapping

from relaunch.core.records import dataclass

_PLACEHOLDER = r"\{([^{}]*)\}"
_INPUT = "inputs."
_BRANCHES = "refs/heads/"
# A job is one item, and the name is in each of its timeline entries that speak of the group.
_LONGEST_NAME = 200
_HASH_LENGTH = 24


@dataclass(frozen=True, slots=True)
class Concurrency:
    """The group of each job, and what a newer job of it does to the one in progress.

    `group` is a text with the placeholders `{branch}`, `{repository}`, `{definition}` and `{inputs.NAME}`.
    `cancel_in_progress`: it is cancelled; else the newer one waits until it has ended.
    """

    group: str
    cancel_in_progress: bool = False


def find_unknown_placeholders(group: str, inputs: Collection[str]) -> list[str]:
    """Return what in the text of a group stands in braces and is no placeholder; `inputs` are the declared ones."""
    known = {"branch", "repository", "definition", *(f"{_INPUT}{name}" for name in inputs)}
    return [name for name in re.findall(_PLACEHOLDER, group) if name not in known]


def write_group(
    concurrency: Concurrency, definition: str, environment: Mapping[str, str], inputs: Mapping[str, str]
) -> str:
    """Return the name of the group of a job, empty if what started it lacks what a placeholder stands for.

    An upload has no branch: were that an empty text, all uploads of a definition would be one group, and all but the
    newest be cancelled. `environment` is that of the trigger facts. A long name ends with its hash.
    """
    ref = environment.get("RELAUNCH_GIT_REF", "")
    values = {
        "branch": ref.removeprefix(_BRANCHES) if ref.startswith(_BRANCHES) else "",
        # GitHub's names of repositories are the same in any case.
        "repository": environment.get("RELAUNCH_GIT_REPOSITORY", "").lower(),
        "definition": definition,
    }
    found = {name: text for name, text in values.items() if text}
    found |= {f"{_INPUT}{name}": text for name, text in inputs.items()}
    if not found.keys() >= set(re.findall(_PLACEHOLDER, concurrency.group)):
        return ""
    name = re.sub(_PLACEHOLDER, lambda placeholder: found[placeholder[1]], concurrency.group)
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…{hash_of(name)}"


def hash_of(name: str) -> str:
    """Return what tells the name of a group from others of its definition, in 24 characters."""
    return hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
