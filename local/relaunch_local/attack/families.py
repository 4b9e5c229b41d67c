"""Attacks by whoever may write a definition: task definitions of others, and their roles, are not run."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from relaunch.core.revisions.revision import TaskDefinitionGrants
from relaunch.entrypoints.job_api import answer_request
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.stack import DEFINITION, AttackedStack
from relaunch_local.simulation.aws.template import CLUSTER

GRANTS = TaskDefinitionGrants(("relaunch-*", "resnet"), "relaunch/")
_ROLE = "arn:aws:iam::111122223333:role/"
_FAMILIES = (
    "payroll",
    "relaunch",
    "Relaunch-x",
    "xrelaunch-a",
    "resnet2",
    "resnet--0123456789abcdef",
    "admin_relaunch-",
)
_ROLES = ("admin", "relaunch", "relaunch-admin", "Relaunch/x", "other/relaunch/x", "x/../relaunch/x")


def foreign_families(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Submit definitions with foreign families and roles: their jobs fail with the reason, and no task is started."""
    stack = AttackedStack(grants=GRANTS)
    allowed = "relaunch-allowed"
    _register(stack, allowed, "relaunch/worker")
    yield attempt("a family and a role of the stack", partial(_submit, stack, allowed, is_allowed=True))
    for role in _ROLES:
        family = f"relaunch-{role.replace('/', '_').replace('.', '_')}"
        _register(stack, family, role)
        yield attempt(f"the role {role}", partial(_submit, stack, family))
    drawn = ("".join(dice.choices("relaunch-_RESNET*", k=dice.randint(1, 20))) for _ in range(min(count, 200)))
    for family in dict.fromkeys((*_FAMILIES, *drawn)):
        if not GRANTS.has_family(family):
            if "*" not in family:
                _register(stack, family, "relaunch/worker")
            yield attempt(f"the family {family}", partial(_submit, stack, family))


def _register(stack: AttackedStack, family: str, role: str) -> None:
    container = {"name": "main", "image": "acme/trainer:1", "memory": 512, "essential": True}
    request = {"family": family, "containerDefinitions": [container], "taskRoleArn": f"{_ROLE}{role}"}
    stack.account.clock.advance(10.0)
    stack.account.simulator.call("RegisterTaskDefinition", request)


def _submit(stack: AttackedStack, family: str, *, is_allowed: bool = False) -> str | None:
    stack.deps.definitions.save_definition(replace(DEFINITION, name="theirs", task_definition=family, inputs={}))
    answer = answer_request({"action": "submit", "definition": "theirs"}, f"request-{family}", stack.deps)
    stack.account.clock.advance(900.0)
    ran = any(_tasks(stack, each) for each in _families(stack, family))
    if ran != is_allowed:
        return f"tasks ran: {ran}; {json.dumps(answer)[:300]}"
    return None


def _families(stack: AttackedStack, family: str) -> list[str]:
    """Return the family and those that were derived from it."""
    found = stack.account.simulator.call("ListTaskDefinitionFamilies", {"status": "ALL"})["families"]
    return [each for each in found if each == family or each.startswith(f"{family}--")]


def _tasks(stack: AttackedStack, family: str) -> list[str]:
    listed = (
        stack.account.simulator.call("ListTasks", {"cluster": CLUSTER, "family": family, "desiredStatus": status})
        for status in ("RUNNING", "STOPPED")
    )
    return [arn for each in listed for arn in each["taskArns"]]
