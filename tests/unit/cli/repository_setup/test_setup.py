"""What is looked at before a repository gets what a training needs."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.file_changes import write_files
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


def test_a_repository_follows_a_stack_that_was_deployed_again(tmp_path: Path) -> None:
    outside = Outside(lambda _service: Ecs(), Gh(), lambda _text: Watched((), ()))
    role = "arn:aws:iam::111122223333:role/relaunch/relaunch-training"
    first, again = (
        replace(
            STACK,
            checkpoint_bucket=f"relaunch-training-newcheckpointbucket-{name}",
            task_role_arn=f"{role}-TaskRole-{name}",
            submit_role_arn=f"{role}-SubmitRole-{name}",
        )
        for name in ("first", "again")
    )
    repository = GitRepository(tmp_path, "acme/vision")
    training = Wanted(Training("vision"))
    write_files(tmp_path, survey(repository, training, first, outside).files)

    setup = survey(repository, replace(training, is_given=True), again, outside)

    assert not setup.without_workflow
    changed = {each.path: each.difference for each in setup.changed_files}
    assert set(changed) == {"relaunch.yaml", "task-definition.json", ".github/workflows/train.yml"}
    for difference in changed.values():
        assert re.search(r"^-.*-first", difference, re.MULTILINE)
        assert re.search(r"^[+].*-again", difference, re.MULTILINE)
    assert setup.definition["taskRoleArn"] == again.task_role_arn


@pytest.mark.parametrize(
    ("branch", "callers", "change"),
    [
        ("main", (), ""),
        ("", (), ""),
        ("master", (), "relaunch deploy GitHubRef=refs/heads/master"),
        ("master", ("arn",), "relaunch github add acme/vision --ref refs/heads/master"),
    ],
)
def test_another_branch_than_the_one_that_is_let_in_is_pointed_out(
    tmp_path: Path, branch: str, callers: tuple[str, ...], change: str
) -> None:
    outside = Outside(lambda _service: Ecs(), Gh(), lambda _text: Watched((), ()))
    repository = GitRepository(tmp_path, "acme/vision", branch)

    setup = survey(repository, Wanted(Training("vision")), replace(STACK, callers=callers), outside)

    assert (change in setup.other_branch) if change else setup.other_branch == ""


def test_options_agree_with_a_file_whose_comments_alone_are_others(tmp_path: Path) -> None:
    outside = Outside(lambda _service: Ecs(), Gh(), lambda _text: Watched((), ()))
    repository = GitRepository(tmp_path, "")
    wanted = Wanted(Training("vision"), is_given=True)
    write_files(tmp_path, survey(repository, wanted, STACK, outside).files)
    file = tmp_path / "relaunch.yaml"
    file.write_text(f"# of an earlier release\n{file.read_text()}")

    assert survey(repository, wanted, STACK, outside).changed_files == []
    file.write_text(file.read_text().replace("count: 1", "count: 2"))
    with pytest.raises(CommandError, match=r"options do not change relaunch\.yaml, which differ"):
        survey(repository, wanted, STACK, outside)


def test_a_file_of_the_clone_is_not_expanded_without_end(tmp_path: Path) -> None:
    doubled = [f"a{number}: &a{number} {{<<: [{', '.join([f'*a{number - 1}'] * 9)}]}}" for number in range(1, 12)]
    (tmp_path / "relaunch.yaml").write_text("\n".join(["a0: &a0 {x: 1}", *doubled]))
    outside = Outside(lambda _service: Ecs(), Gh(), lambda _text: Watched((), ()))

    # PyYAML's own loader takes hours, and the memory of the machine.
    with pytest.raises(CommandError, match=r"options do not change relaunch\.yaml, which differ"):
        survey(GitRepository(tmp_path, ""), Wanted(Training("vision"), is_given=True), STACK, outside)
