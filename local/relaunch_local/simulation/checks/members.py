"""What belongs together of jobs with several nodes: their machines, whose tags name the first one, and their tasks."""

from collections.abc import Iterable, Mapping
from typing import Any

from relaunch.core.machines.groups import first_id_of, member_ids
from relaunch.core.machines.machine import Machine
from relaunch.core.machines.settings import GROUP_TAG, MACHINE_TAG
from relaunch_local.ecs.engine.model import Instance


def machine_of(host: Instance, machines: Mapping[str, Machine]) -> str:
    """Return the ID of the machine that has an instance; while none has, that of its tag."""
    tagged = host.tags.get(MACHINE_TAG, "")
    if GROUP_TAG not in host.tags or tagged not in machines:
        return tagged
    members = member_ids(tagged, machines[tagged].request.size)
    known = (machines[each] for each in members if each in machines)
    return next((each.machine_id for each in known if each.instance_id == host.instance_id), tagged)


def instances_of(machine: Machine, hosts: Iterable[Instance], machines: Mapping[str, Machine]) -> list[Instance]:
    """Return the instances that were launched for a machine.

    Of a group it is that which the machine has, or which is its own by the order of their IDs and no other machine has.
    """
    if machine.request.size > 1:
        group = [each for each in hosts if each.tags.get(MACHINE_TAG) == first_id_of(machine.machine_id)]
        group.sort(key=lambda each: each.instance_id)
        members = member_ids(machine.machine_id, machine.request.size)
        taken = {machines[each].instance_id for each in members if each in machines}
        own = [each for each in group[machine.request.place :][:1] if each.instance_id not in taken]
        return [each for each in group if each.instance_id == machine.instance_id] if machine.instance_id else own
    return [each for each in hosts if machine_of(each, machines) == machine.machine_id]


def is_of_a_part(machine: Machine, hosts: Iterable[Instance]) -> bool:
    """Return whether EC2 launched fewer instances than the request of a machine was for: none of them is used."""
    first = first_id_of(machine.machine_id)
    return sum(each.tags.get(MACHINE_TAG) == first for each in hosts) < machine.request.size


def placement_of(task: Mapping[str, Any]) -> str:
    """Return what the tasks of one placement have in common: the group of a gang, or the ARN of the only one."""
    overrides = task.get("overrides", {}).get("containerOverrides", ())
    given = {each["name"]: each["value"] for container in overrides for each in container.get("environment", ())}
    return str(given.get("RELAUNCH_GROUP") or task["taskArn"])


def peers_of(tasks: Mapping[str, Mapping[str, Any]], task_arn: str) -> tuple[str, ...]:
    """Return the tasks of a job that were launched with a task, itself included."""
    if task_arn not in tasks:
        return (task_arn,)
    placement = placement_of(tasks[task_arn])
    return tuple(arn for arn, each in tasks.items() if placement_of(each) == placement)
