"""Use a node that registers: for jobs that wait for it, or after the launch that asked for it was withdrawn."""

from relaunch.core.launches.launch import NodeObservation, may_refute
from relaunch.core.machines.events import NodeSeen
from relaunch.ports import JobDependencies
from relaunch.usecases.advance_machine import advance_machine
from relaunch.usecases.reopen_offerings import reopen_offerings


def observe_machine(seen: NodeObservation, deps: JobDependencies) -> None:
    """Tell the machine of our own that has the node, else reopen the offering that the node refutes a failure of.

    ECS publishes many events of every instance: each costs one read, for an instance of a capacity provider also one
    query of the capacity memory, and a call of ECS only if a failure is remembered that the instance may refute. A lost
    event is made up for by the next look at the machine, or the next sweep.

    Raises:
        TransientError: retry.
    """
    machine_id = deps.machines.find_by_instance(seen.node.instance_id) if seen.node.instance_id else None
    if machine_id is not None:
        advance_machine(machine_id, lambda _machine: node_seen(seen, deps), deps)
        return
    remembered = deps.capacity.load_capacity_memory(deps.clock.now()).values()
    failures = [failure for failure in remembered if may_refute(seen, failure)]
    node = deps.targets.ecs.find_node(seen.node.name) if failures else None
    if node is not None:
        reopen_offerings(failures, [node], deps)


def node_seen(seen: NodeObservation, deps: JobDependencies) -> NodeSeen:
    """Return the event of a node for its machine."""
    at = seen.registered_at or deps.clock.now()
    return NodeSeen(
        seen.node.name,
        seen.registered,
        seen.is_active,
        at,
        is_connected=seen.is_connected,
        is_draining=seen.is_draining,
        boot=seen.boot,
    )
