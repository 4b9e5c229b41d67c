"""Which machine has an instance: the tags of those that are launched together name the first machine of their group."""

from collections.abc import Iterable, Mapping

from relaunch.core.machines.groups import member_ids
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
    """Return the instances that were launched for a machine; of a group those that the machine has."""
    if machine.request.size > 1:
        return [each for each in hosts if each.instance_id == machine.instance_id]
    return [each for each in hosts if machine_of(each, machines) == machine.machine_id]
