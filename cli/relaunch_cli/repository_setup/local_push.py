"""What `relaunch local push` pushes: the files of a commit, under the tags that the workflow of a training gives."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaunch.core.revisions.image_name import parse_image_name
from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.dockerfile_text import read_program
from relaunch_cli.repository_setup.file_changes import read_text
from relaunch_cli.repository_setup.findings import GitRepository
from relaunch_cli.repository_setup.git_repository import find_head, write_archive
from relaunch_cli.repository_setup.setup import TASK_DEFINITION_FILE, read_task_definition

_DOCKERFILE = "Dockerfile"
_LATEST = "latest"
_HINT = "relaunch init writes one"
_OF_ECR = ".dkr.ecr."


@dataclass(frozen=True, slots=True)
class LocalPush:
    """A commit as an image: its repository in ECR, its tags, and what its Dockerfile runs.

    `newest_tag` is the one that moves, and `has_changes` says that files are not as in the commit.
    """

    root: Path
    commit: str
    has_changes: bool
    repository: str
    newest_tag: str
    entry_point: Sequence[str]
    command: Sequence[str]

    @property
    def tag(self) -> str:
        """The tag that this commit alone has, and which starts jobs."""
        return f"{self.newest_tag.removesuffix(_LATEST)}{self.commit}"

    def archive(self, file: Path) -> Mapping[str, Any]:
        """Write the files of the commit; return the arguments of the local world's control.

        Raises:
            CommandError: git cannot do that.
        """
        write_archive(self.root, self.commit, file)
        return {
            "archive": str(file),
            "repository": self.repository,
            # As the workflow does: first the one that starts no job.
            "tags": [self.newest_tag, self.tag],
            "entry_point": list(self.entry_point),
            "command": list(self.command),
            "path": os.environ.get("PATH", ""),
        }


def find_push(repository: GitRepository) -> LocalPush:
    """Return what the commit that is checked out is pushed as.

    Raises:
        CommandError: there is no commit, no Dockerfile, or no task definition with an image of ECR.
    """
    root = repository.root
    definition, dockerfile = (_read(root, path) for path in (TASK_DEFINITION_FILE, _DOCKERFILE))
    name, tag = _image_of(read_task_definition(definition))
    commit, has_changes = find_head(root)
    return LocalPush(root, commit, has_changes, name, tag, *read_program(dockerfile))


def _read(root: Path, path: str) -> str:
    text = read_text(root, path)
    if text is None:
        raise CommandError(f"{root} has no {path}", _HINT)
    return text


def _image_of(definition: Mapping[str, Any]) -> tuple[str, str]:
    """Return the repository and the moving tag of the training's image."""
    containers = definition.get("containerDefinitions")
    given = containers if isinstance(containers, list) else []
    for found in (parse_image_name(str(each.get("image"))) for each in given if isinstance(each, Mapping)):
        if found is not None and _OF_ECR in found.registry and found.tag.endswith(_LATEST):
            return found.repository, found.tag
    raise CommandError(
        f"no container in {TASK_DEFINITION_FILE} has an image of ECR whose tag ends with {_LATEST}",
        "relaunch init writes …/relaunch/trainer:NAME-latest",
    )
