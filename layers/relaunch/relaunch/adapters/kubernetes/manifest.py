"""The manifest of the Job that runs a placement in a cluster.

Sources: the Kubernetes API Reference (batch/v1, v1), and those of core.kubernetes for GPUs.
"""

from collections.abc import Callable, Mapping
from typing import Any

from relaunch.adapters.kubernetes.gang_manifest import group_labels, job_fields, rank_variables, service_name
from relaunch.adapters.kubernetes.labels import owner_annotation, task_labels, task_name
from relaunch.adapters.kubernetes.pod_parts import (
    cpu_quantity,
    memory_quantity,
    merge_fragment,
    placement,
    variables,
    volumes,
)
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, PodSecurity
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.kubernetes.acs import ask_storage
from relaunch.core.kubernetes.node_labels import NodeLabels
from relaunch.core.kubernetes.pod_fragment import find_fragment_problems, find_gang_fragment_problems
from relaunch.core.kubernetes.pod_gpus import PodGpus
from relaunch.core.kubernetes.rules import MAIN_CONTAINER, QUEUE_LABEL, ask_gpus, purchase_options
from relaunch.core.launches.launch import LaunchRequest
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.revisions.revision import STOP_TIMEOUT_SECONDS
from relaunch.ports import PermanentError

# Relaunch itself relaunches a job, as a new Job: a pod that Kubernetes started anew would be a second task of the
# attempt. Servers before 1.26 drop the policy, without which the end of a pod that is gone is not known.
_DISRUPTION_RULE = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
# Relaunch reads how a task ended within minutes; its logs are for people, also after a weekend. A quota of Jobs counts
# those that have finished. Servers before 1.21 drop the field and keep the Jobs.
_KEPT_SECONDS = 3 * 24 * 3600


def manifest_builder(
    target: Target, stack: str, labels: NodeLabels | None = None
) -> Callable[[LaunchRequest], dict[str, Any]]:
    """Return what builds the Jobs of a stack on a target, whose nodes have these labels."""
    return lambda request: build_job(request, target, stack, labels)


def preview_job(definition: JobDefinition, stack: str, labels: NodeLabels | None = None) -> dict[str, Any]:
    """Return the manifest of a definition's job as if it were launched now: what its event gives is not in it.

    It is for the first purchase option that the job may have, and named after the definition, as jobs have no ID yet.
    `labels` are those of the nodes, by the stack.

    Raises:
        PermanentError: that of build_job.
    """
    options = purchase_options(definition)
    purchase = PurchaseOption.SPOT if PurchaseOption.SPOT in options else PurchaseOption.ON_DEMAND
    request = LaunchRequest(
        attempt=AttemptKey(definition.name, 1),
        placement_number=1,
        revision_arn="",
        container=definition.container or MAIN_CONTAINER,
        command=definition.command,
        environment=definition.environment,
        offering=OfferingKey(str(definition.target), None, purchase),
        workload=definition.kubernetes,
        gpu=definition.accelerator.gpu,
        nodes=definition.nodes,
    )
    return build_job(request, definition.target, stack, labels)


def build_job(request: LaunchRequest, target: Target, stack: str, labels: NodeLabels | None = None) -> dict[str, Any]:
    """Return the manifest of the Job of a placement; quantities are strings, as clients write them.

    Raises:
        PermanentError: the request has no workload, or no GPU, or its fragment says what none may: a definition may be
            stored by other means than those that read its file.
    """
    workload = request.workload
    gpu = request.gpu
    if workload is None or gpu is None:
        raise PermanentError(f"launching {request.attempt}: the job has no `kubernetes` or no `accelerator.gpu`")
    problems = find_fragment_problems(workload, request.container, request.environment)
    if not problems and request.nodes > 1:
        problems = tuple(find_gang_fragment_problems(workload))
    if problems:
        raise PermanentError(f"launching {request.attempt}: {'; '.join(map(str, problems))}")
    gpus = ask_gpus(target, gpu, workload, request.offering.purchase, labels)
    name = task_name(request.attempt, request.placement_number, request.nodes)
    own = {
        **task_labels(stack, request.attempt, request.placement_number, request.nodes),
        "app.kubernetes.io/managed-by": "relaunch",
    }
    pod_labels = {**workload.labels, **own}
    group = group_labels(target, name, request.nodes)
    annotations = {**workload.annotations, **owner_annotation(request.attempt)}
    # The disk of ACS is the pod's, and has its image; elsewhere it is a resource of the container.
    own_disk = ask_storage(workload.disk_mib) if target.capabilities.has_compute_classes else {}
    template = {
        "metadata": {"labels": {**pod_labels, **gpus.labels, **group}, "annotations": {**annotations, **own_disk}},
        "spec": _pod_spec(request, workload, gpus, target, name),
    }
    queue = {QUEUE_LABEL: workload.queue} if workload.queue else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {**pod_labels, **queue}, "annotations": annotations},
        "spec": {
            **({"suspend": True} if queue else {}),
            **job_fields(request.nodes),
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "podFailurePolicy": {"rules": [_DISRUPTION_RULE, _exit_code_rule(request.container)]},
            "template": merge_fragment(template, workload, _container_security_context(workload)),
        },
    }


def _exit_code_rule(container: str) -> dict[str, Any]:
    """Return the rule that makes the Job tell the exit code of its container, which outlives its pod."""
    codes = {"containerName": container, "operator": "NotIn", "values": [0]}
    # Without it clients that check the schema of 1.26, where it was required, refuse the manifest.
    return {"action": "FailJob", "onExitCodes": codes, "onPodConditions": []}


def _pod_spec(
    request: LaunchRequest, workload: KubernetesWorkload, gpus: PodGpus, target: Target, name: str
) -> dict[str, Any]:
    found, mounts = volumes(workload)
    container = _container(request, workload, mounts, name) | {"resources": _resources(workload, gpus, target)}
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": STOP_TIMEOUT_SECONDS,
        # Without it a pod has the token of its service account, that of the namespace's default one too.
        "automountServiceAccountToken": bool(workload.service_account) and workload.service_account_token,
        "securityContext": _pod_security_context(workload),
        "containers": [container],
        **placement(workload, gpus.tolerations),
    }
    if request.nodes > 1:
        spec["subdomain"] = service_name(name)
    if found:
        spec["volumes"] = found
    if workload.service_account:
        spec["serviceAccountName"] = workload.service_account
    if selector := {**workload.node_selector, **gpus.node_selector}:
        spec["nodeSelector"] = selector
    return spec


def _pod_security_context(workload: KubernetesWorkload) -> dict[str, Any]:
    """Return what holds for all containers ("Pod Security Standards", Kubernetes documentation)."""
    context: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if workload.pod_security is PodSecurity.RESTRICTED:
        context["runAsNonRoot"] = True
    if workload.run_as_user is not None:
        context["runAsUser"] = workload.run_as_user
    return context


def _container_security_context(workload: KubernetesWorkload) -> dict[str, Any]:
    context: dict[str, Any] = {"allowPrivilegeEscalation": False}
    if workload.pod_security is PodSecurity.RESTRICTED:
        context["capabilities"] = {"drop": ["ALL"]}
    return context


def _container(
    request: LaunchRequest, workload: KubernetesWorkload, mounts: list[dict[str, Any]], name: str
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": request.container, "image": workload.image}
    if request.command:
        container["command"] = list(request.command)
    if workload.working_directory:
        container["workingDir"] = workload.working_directory
    if found := [*variables(request.environment, workload), *rank_variables(request, name)]:
        container["env"] = found
    if mounts:
        container["volumeMounts"] = mounts
    return {**container, "securityContext": _container_security_context(workload)}


def _resources(workload: KubernetesWorkload, gpus: PodGpus, target: Target) -> dict[str, Mapping[str, str]]:
    requests: dict[str, str] = {}
    if workload.vcpus is not None:
        requests["cpu"] = cpu_quantity(workload.vcpus)
    if workload.memory_mib is not None:
        requests["memory"] = memory_quantity(workload.memory_mib)
    if workload.disk_mib is not None and not target.capabilities.has_compute_classes:
        requests["ephemeral-storage"] = memory_quantity(workload.disk_mib)
    asked = {name: str(count) for name, count in gpus.resources.items()}
    limits = requests | asked
    if gpus.has_requests:
        requests |= asked
    return {"requests": requests, "limits": limits} if requests else {"limits": limits}
