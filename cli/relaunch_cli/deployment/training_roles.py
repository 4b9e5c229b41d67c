"""The roles of single trainings: a stack of infrastructure/training-role.yaml for each."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from relaunch_cli.deployment.change_set import list_stacks
from relaunch_cli.deployment.findings import Stack, role_stack_name
from relaunch_cli.deployment.refusals import RefusedError

_NAME = re.compile(r"[a-z][a-z0-9-]{0,47}")
_APPLICATION = "ApplicationStack"
_TRAINING = "TrainingName"
_DEFAULT_PATH = "relaunch/"


def check_names(trainings: Iterable[str]) -> None:
    """Check that these can be names of trainings.

    Raises:
        RefusedError: one cannot.
    """
    for each in trainings:
        if not _NAME.fullmatch(each):
            raise RefusedError(f"{each!r} is no name of a training: a to z, 0 to 9, -, at most 48, a letter first")


def find_role_stacks(stack: str, stacks: Any) -> Sequence[Stack]:
    """Return the stacks with the roles of trainings of the application `stack`, by their names.

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    named = (each for each in list_stacks(stacks) if each.name == _name_of(each))
    return sorted((each for each in named if each.parameters[_APPLICATION] == stack), key=lambda each: each.name)


def _name_of(found: Stack) -> str:
    """Return the name that a stack would have if it were of a training's role, empty if it is none."""
    parameters = found.parameters
    is_role = {_APPLICATION, _TRAINING} <= set(parameters)
    return role_stack_name(parameters[_APPLICATION], parameters[_TRAINING]) if is_role else ""


def training_of(found: Stack) -> str:
    """Return the name of the training that a stack has the role of."""
    return found.parameters[_TRAINING]


def role_parameters(
    stack: str, training: str, wanted: Mapping[str, str], outputs: Mapping[str, str], task_role_path: str
) -> dict[str, str]:
    """Return the parameters of the stack with the role of a training.

    `wanted` and `outputs` are the parameters and the outputs of the stack of all trainings, `task_role_path` is that of
    the application, empty for its default.
    """
    return {
        _APPLICATION: stack,
        _TRAINING: training,
        # A path of its own, which the operators of this application may pass roles of, and those of no other one.
        "RolePath": f"/{task_role_path or _DEFAULT_PATH}trainings/{stack}/",
        "CheckpointBucket": outputs["CheckpointBucketName"],
        "DataBucket": outputs.get("DataBucketName", ""),
        "CheckpointKeyArns": wanted.get("CheckpointKeyArns", ""),
    }
