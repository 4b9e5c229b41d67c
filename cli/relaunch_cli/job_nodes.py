"""Which nodes have room for the pod of a job that waits for one, as far as the caller's kubeconfig may see them."""

from typing import TYPE_CHECKING

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.kubernetes.rules import predict_job_fit
from relaunch.ports import PortError

if TYPE_CHECKING:
    from relaunch.core.kubernetes.node_fit import NodeFit
    from relaunch.core.kubernetes.node_labels import NodeLabels


def find_node_fits(job: Job, labels: "NodeLabels | None" = None) -> "tuple[NodeFit, ...]":
    """Return what each node says of the job's pod, if it has none yet; empty if none can tell, or cannot be read.

    `labels` are those that the stack names, None if they are not known. A cluster without the pod tells nothing:
    the context of a kubeconfig may be that of another one.
    """
    attempt = job.attempt
    if job.state is not JobState.LAUNCHING or attempt is None or attempt.node is not None or attempt.task_id is None:
        return ()

    if predict_job_fit(job.definition, ()) is None:
        return ()
    from relaunch.adapters.kubernetes.inspection import ClusterInspection  # noqa: PLC0415 - where a pod waits
    from relaunch_cli.own_cluster import open_cluster  # noqa: PLC0415 - as above

    try:
        with open_cluster(None, "") as cluster:
            inspection = ClusterInspection(cluster)
            if not inspection.has_task(attempt.task_id):
                return ()
            return predict_job_fit(job.definition, inspection.gpu_nodes(), labels) or ()
    except PortError:
        # Whoever may not read nodes is told what the scheduler said.
        return ()
