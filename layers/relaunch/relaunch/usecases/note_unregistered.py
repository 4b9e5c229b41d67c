"""Find instances of capacity providers that run without being nodes of the cluster, and let somebody know."""

from collections.abc import Collection
from datetime import timedelta

from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.machines.events import InstanceObservation
from relaunch.ports import JobDependencies, PortError

# The user data of groups that `relaunch deploy Providers=...` makes switches an instance off 20 minutes after its boot:
# until then a sweep of every ten minutes sees it.
_LEAST = timedelta(minutes=10)


def note_unregistered(instances_of_nodes: Collection[str], deps: JobDependencies) -> None:
    """Alert of instances in the groups of capacity providers that are no nodes in the time that their type may take.

    Nothing but an alert ends such an instance sooner: it is its group's, which may only start the next one. An error of
    EC2 is left to the next sweep.
    """
    try:
        found = [each for each in deps.hosts.running_in_groups() if each.instance_id not in instances_of_nodes]
    except PortError as error:
        deps.log.decided("postponed", reason=f"looking for instances that are not registered: {error}")
        return
    late = [each for each in found if _is_late(each, deps)]
    for seen in late:
        deps.log.decided("not registered", instance_id=seen.instance_id, is_alert=True)
    if late:
        deps.metrics.record(MetricDatum(Metric.MACHINE_ALERTS, len(late)))


def _is_late(seen: InstanceObservation, deps: JobDependencies) -> bool:
    instance_type = seen.offering.instance_type if seen.offering else ""
    bound = max(_LEAST, deps.limits.machines.registration_deadline_of(instance_type))
    return seen.launched_at is not None and deps.clock.now() - seen.launched_at >= bound
