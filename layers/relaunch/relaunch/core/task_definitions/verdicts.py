"""The verdict on every member of RegisterTaskDefinition, and what they say of one task definition."""

from collections.abc import Iterator

from relaunch.core.task_definitions.container_members import CONTAINER_MEMBERS
from relaunch.core.task_definitions.member import Found, Member, TaskDefinition, Verdict, find_values
from relaunch.core.task_definitions.task_members import EC2, MANAGED_INSTANCES, TASK_MEMBERS

MEMBERS: tuple[Member, ...] = (*TASK_MEMBERS, *CONTAINER_MEMBERS)
"""Every member; a test holds them to the model of RegisterTaskDefinition in botocore."""

_CAPABILITY = "com.amazonaws.ecs.capability."
# "Amazon ECS container agent configuration": the logging drivers that ecs-init does not name to the agent. The agent
# has SELinux and AppArmor if it is configured so, and volume plugins if somebody installed them.
_UNCOMMON = (
    *(f"{_CAPABILITY}logging-driver.{name}" for name in ("gelf", "journald", "logentries", "splunk", "sumologic")),
    f"{_CAPABILITY}selinux",
    f"{_CAPABILITY}apparmor",
)
_PLUGIN = f"{_CAPABILITY}docker-plugin."
_COMMON_PLUGINS = (f"{_PLUGIN}local", f"{_PLUGIN}amazon-ecs-volume-plugin")


def find_refusals(definition: TaskDefinition) -> tuple[str, ...]:
    """Return why Relaunch launches no task of a task definition, in words for the user."""
    return tuple(dict.fromkeys(_find(Verdict.REFUSED, definition)))


def find_warnings(definition: TaskDefinition) -> tuple[str, ...]:
    """Return what a user of a task definition is warned of."""
    return tuple(dict.fromkeys(_find(Verdict.WARNED, definition)))


def instance_constraints(definition: TaskDefinition) -> tuple[str, ...]:
    """Return the expressions that an instance must satisfy: the memberOf constraints, and attributes that ECS requires.

    Of `requiresAttributes`, which ECS derives when a task definition is registered, those are left out that the agent
    of an ECS-optimized image registers.
    """
    own = tuple(
        str(each.get("expression", ""))
        for each in definition.get("placementConstraints") or ()
        if each.get("type") == "memberOf"
    )
    required = (str(each["name"]) for each in definition.get("requiresAttributes") or ())
    return own + tuple(f"attribute:{name} exists" for name in required if _is_uncommon(name))


def is_managed_only(definition: TaskDefinition) -> bool:
    """Return whether ECS runs tasks of it on Managed Instances alone, for its compatibilities or a Neuron resource."""
    wanted = set(definition.get("requiresCompatibilities") or ())
    types = find_values("containerDefinitions[].resourceRequirements[].type", definition)
    is_for_managed = MANAGED_INSTANCES in wanted and EC2 not in wanted
    return is_for_managed or any(found.value == "NeuronDevice" for found in types)


def _find(verdict: Verdict, definition: TaskDefinition) -> Iterator[str]:
    for member in MEMBERS:
        if member.verdict is verdict and member.applies is not None:
            for found in find_values(member.path, definition):
                if member.applies(found):
                    yield f"{_name(member, found)}: {member.why}"


def _name(member: Member, found: Found) -> str:
    name = member.path.rpartition("[].")[2].removesuffix("[]")
    holder = found.holder.get("name") if found.holder is not found.definition else None
    of = f" of {holder}" if holder else ""
    return f"{name} {found.value}{of}" if isinstance(found.value, str | int) else f"{name}{of}"


def _is_uncommon(attribute: str) -> bool:
    return attribute in _UNCOMMON or (attribute.startswith(_PLUGIN) and attribute not in _COMMON_PLUGINS)
