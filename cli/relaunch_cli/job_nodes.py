"""Which nodes have room for the pod of a job that waits for one, as far as the caller's kubeconfig may see them."""

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job, JobState
from relaunch.core.kubernetes.node_fit import NodeFit, predict_fit
from relaunch.core.kubernetes.rules import ask_gpus
from relaunch.ports import PortError


def find_node_fits(job: Job) -> tuple[NodeFit, ...]:
    """Return what each node says of the job's pod, if it has no node yet; empty if the nodes cannot be read."""
    from relaunch.adapters.kubernetes.inspection import ClusterInspection
    from relaunch_cli.own_cluster import open_cluster

    definition, gpu = job.definition, job.definition.accelerator.gpu
    is_placed = job.attempt is not None and job.attempt.node is not None
    if definition.kubernetes is None or gpu is None or job.state is not JobState.LAUNCHING or is_placed:
        return ()
    asked = ask_gpus(definition.target, gpu, definition.kubernetes, PurchaseOption.ON_DEMAND)
    try:
        with open_cluster(None, "") as cluster:
            return predict_fit(ClusterInspection(cluster).gpu_nodes(), asked)
    except PortError:
        # Whoever may not read nodes is told what the scheduler said.
        return ()
