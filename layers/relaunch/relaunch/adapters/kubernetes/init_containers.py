"""How the init containers of a pod keep it from starting: why the main one waits, and which of them failed.

The main container starts when each has ended with 0, and reports nothing but PodInitializing until then ("Init
Containers", Kubernetes documentation). Sidecars, which are restarted always, need only to start, and are ended with
the pod: how they exit says nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from relaunch.adapters.kubernetes.api.models import ContainerStatus, Pod
from relaunch.adapters.kubernetes.stop_reports import observe_container
from relaunch.core.launches.launch import ContainerObservation, ReportedCause, StopReport

_UNREMARKABLE = frozenset({"", "PodInitializing", "ContainerCreating"})


def explain_init_wait(pod: Pod) -> str:
    """Return which init container a pod waits for, and what that waits for; empty if for none.

    It is the first one that has not ended: they run one after the other.
    """
    status = next(_unfinished(pod), None)
    if status is None:
        return ""
    waiting = status.state.waiting
    if waiting is not None and waiting.reason not in _UNREMARKABLE:
        said = ": ".join(part for part in (waiting.reason, waiting.message.strip()) if part)
        return f"init container {status.name}: {said}"
    return f"init container {status.name} runs" if status.state.running is not None else ""


def with_init_containers(
    containers: Mapping[str, ContainerObservation], pod: Pod, *, ended_by_itself: bool
) -> dict[str, ContainerObservation]:
    """Return the containers of a pod with the init container that keeps them from starting, if one does.

    Where the pod ended by itself, the program fails with it; what ran out of memory or did not start says so itself.
    """
    observed = {each.name: observe_container(each) for each in _unfinished(pod)}
    blocking = {name: each for name, each in observed.items() if each.exit_code is not None or each.report.causes}
    if not blocking:
        return dict(containers)
    failed = [name for name, each in blocking.items() if each.exit_code and not each.report.causes]
    report = _depends_on(failed[0], blocking[failed[0]]) if failed and ended_by_itself else StopReport()
    # All that the others say is that they wait for it.
    return {**{name: replace(each, report=report) for name, each in containers.items()}, **blocking}


def _depends_on(name: str, failed: ContainerObservation) -> StopReport:
    said = f"init container {name} exited with {failed.exit_code}"
    return StopReport(said, frozenset({ReportedCause.DEPENDENCY_FAILED}))


def _unfinished(pod: Pod) -> Iterator[ContainerStatus]:
    """Yield the init containers that have not ended with 0, and of the sidecars those that do not run."""
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    for status in pod.status.init_container_statuses:
        ended = status.state.terminated
        is_over = pod.status.phase not in {"Pending", "Unknown"} and status.name in sidecars
        is_up = status.state.running is not None and status.name in sidecars
        if not is_over and not is_up and (ended is None or ended.exit_code != 0):
            yield status
