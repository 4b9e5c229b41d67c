"""Use an instance that arrives after its launch was withdrawn."""

from relaunch.core.launches.launch import NodeObservation, may_refute
from relaunch.ports import JobDependencies
from relaunch.usecases.reopen_offerings import reopen_offerings


def observe_machine(seen: NodeObservation, deps: JobDependencies) -> None:
    """Reopen the offering of a container instance if a launch there was withdrawn before the instance registered.

    ECS publishes many events of every instance: each costs one query of the capacity memory, and a call of ECS only if
    a failure is remembered that the instance may refute. A lost event is made up for by the next sweep.

    Raises:
        TransientError: retry.
    """
    remembered = deps.capacity.load_capacity_memory(deps.clock.now()).values()
    failures = [failure for failure in remembered if may_refute(seen, failure)]
    node = deps.tasks.find_node(seen.node.name) if failures else None
    if node is not None:
        reopen_offerings(failures, [node], deps)
