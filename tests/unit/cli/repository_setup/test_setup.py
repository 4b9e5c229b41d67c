"""What is looked at before a repository gets what a training needs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.findings import GitRepository, Setup
from relaunch_cli.repository_setup.github_webhook import Gh
from relaunch_cli.repository_setup.setup import Outside, Wanted, Watched, survey
from relaunch_cli.repository_setup.training import Training
from unit.cli.repository_setup.trainings import STACK


class Ecs:
    """ECS without a revision of the family that is asked for."""

    def describe_task_definition(self, **_: Any) -> Any:
        return {"taskDefinition": {"status": "INACTIVE"}}


def look(folder: Path, families: tuple[str, ...]) -> Setup:
    """Look at a repository that has nothing yet, in a stack with these families."""
    outside = Outside(lambda _service: Ecs(), Gh(), lambda _text: Watched((), ()))
    repository = GitRepository(folder, "")
    return survey(repository, Wanted(Training("vision"), "", ""), replace(STACK, families=families), outside)


@pytest.mark.parametrize(
    ("families", "family"),
    [
        (("relaunch-*",), "relaunch-vision"),
        (("bert", "vision_b-*"), "vision_b-vision"),
        (("any",), "vision"),
        (("vision", "bert"), "vision"),
    ],
)
def test_a_training_gets_a_family_that_jobs_may_run(tmp_path: Path, families: tuple[str, ...], family: str) -> None:
    assert look(tmp_path, families).definition["family"] == family


def test_a_family_that_jobs_may_not_run_and_operators_may_not_register_in_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        look(tmp_path, ("bert", "gpt"))

    assert refused.value.message == (
        "the stack runs no task definitions of the family vision: its TaskDefinitionFamilies are bert, gpt"
    )
    assert "name another family in task-definition.json and relaunch.yaml" in refused.value.hint
