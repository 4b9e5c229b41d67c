"""The tasks and container instances of an ECS cluster, and what remains of an instance (Amazon ECS API Reference)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ParamValidationError

from relaunch.adapters.aws.ecs.events import observe_container_instance, observe_gpus, observe_task, started_by
from relaunch.adapters.aws.ecs.pages import read_pages
from relaunch.adapters.aws.ecs.placement_constraints import ec2_instance_is, instance_type_is
from relaunch.adapters.aws.ecs.rate_limiter import RateLimiter
from relaunch.adapters.aws.ecs.run_task import build_run_task, outcome_of_error, outcome_of_response
from relaunch.adapters.aws.ecs.run_task_limits import check_limits
from relaunch.adapters.aws.errors import AwsError, aws_errors, error_code, is_throttled
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import (
    LaunchConflict,
    LaunchOutcome,
    LaunchRequest,
    NodeObservation,
    TaskObservation,
    TaskPhase,
    TaskPlaced,
)
from relaunch.core.selection.gpu_share import GpuDevice
from relaunch.core.selection.neuron_devices import RemainingResources
from relaunch.ports import NotYetError, PermanentError, TransientError

if TYPE_CHECKING:
    from mypy_boto3_ecs import ECSClient
from relaunch.core.task_definitions.reservation import CPU_UNITS_PER_VCPU


def read_remaining_resources(machine: Mapping[str, Any]) -> RemainingResources:
    """Parse the remaining vCPUs and memory, and the host ports used by tasks and the agent."""
    remaining = {each.get("name"): each for each in machine.get("remainingResources") or ()}
    taken = remaining.get("PORTS", {}).get("stringSetValue") or ()
    return RemainingResources(
        vcpus=remaining.get("CPU", {}).get("integerValue", 0) / CPU_UNITS_PER_VCPU,
        memory_mib=remaining.get("MEMORY", {}).get("integerValue", 0),
        used_ports=frozenset(int(port) for port in taken if str(port).isdecimal()),
    )


MAX_DESCRIBED = 100
"""The maximum of DescribeTasks and of DescribeContainerInstances."""

MAX_LISTED = 100
"""The maximum of ListServices, which answers ten otherwise."""

MAX_REASON_LENGTH = 255
"""Maximum length of the reason of StopTask in characters, documented until 2024."""

_MISSING = "MISSING"
_DESCRIBED_IN_SECONDS = 30
_UNKNOWN_TASK_CODES = frozenset({"InvalidParameterException", "ClientException"})


class EcsTarget:
    """Implements TaskTarget for one cluster.

    Retries by the SDK are safe: a repeated RunTask has the same client token, so that ECS returns the task or the
    failures of the first request, and a refusal of a repetition says that it is one. The other actions are idempotent.
    `subnets` and `security_groups` are for tasks with network mode awsvpc. `rate_limiter`, if given, limits the rate of
    launches.
    """

    def __init__(
        self,
        client: "ECSClient",
        cluster: str,
        subnets: Sequence[str] = (),
        security_groups: Sequence[str] = (),
        rate_limiter: RateLimiter | None = None,
    ) -> None:
        self._rate_limiter = rate_limiter
        self._client = client
        self._cluster = cluster
        self._subnets = tuple(subnets)
        self._security_groups = tuple(security_groups)

    def launch(self, request: LaunchRequest) -> LaunchOutcome:
        # Of all ranks before any is sent: the number of a later one may have a digit more.
        violations = dict.fromkeys(violation for each in request.ranks for violation in check_limits(each))
        if violations:
            raise PermanentError(f"launching {request.attempt}: {'; '.join(violations)}")
        placed: list[str] = []
        for each in request.ranks:
            outcome = self._launch_one(each)
            if isinstance(outcome, LaunchConflict):
                if not request.followers:
                    return outcome
                # The client token is the rank's own: its task was launched before the settings changed.
                outcome = TaskPlaced(outcome.task_ids[0])
            if not isinstance(outcome, TaskPlaced):
                # What was placed is answered again where the request is repeated: its ranks have tokens of their own.
                return replace(outcome, placed=tuple(placed))
            placed.append(outcome.task_id)
        return TaskPlaced(placed[0], tuple(placed[1:]))

    def _launch_one(self, request: LaunchRequest) -> LaunchOutcome:
        if self._rate_limiter:
            self._rate_limiter.wait()
        try:
            response = self._client.run_task(
                **build_run_task(request, self._cluster, self._subnets, self._security_groups)
            )
        except ParamValidationError as error:
            raise PermanentError(f"launching {request.attempt}: {error}") from error
        except AwsError as error:
            if self._rate_limiter and is_throttled(error):
                self._rate_limiter.back_off()
            return outcome_of_error(error)
        return outcome_of_response(response)

    def stop(self, task_id: str, reason: str) -> None:
        with aws_errors(f"stopping task {task_id}"):
            try:
                self._client.stop_task(cluster=self._cluster, task=task_id, reason=reason[:MAX_REASON_LENGTH])
            except ClientError as error:
                if not _is_not_found(error):
                    raise

    def describe(self, task_ids: Sequence[str]) -> Mapping[str, TaskObservation | None]:
        observed: dict[str, TaskObservation | None] = {}
        arns = [arn for arn in dict.fromkeys(task_ids) if self._is_here(arn)]
        if task_ids and not arns:
            raise PermanentError(f"{task_ids[0]} is in another cluster than {self._cluster}")
        for start in range(0, len(arns), MAX_DESCRIBED):
            observed.update(self._describe_page(arns[start : start + MAX_DESCRIBED]))
        return observed

    def list_tasks(self) -> Iterator[Sequence[TaskObservation]]:
        with aws_errors("listing the tasks of the cluster"):
            for page in read_pages(self._client.list_tasks, cluster=self._cluster, desiredStatus="RUNNING"):
                yield self._describe_listed(page["taskArns"])

    def list_nodes(self) -> Iterator[Sequence[NodeObservation]]:
        doing = "listing the machines of the cluster"
        with aws_errors(doing):
            for page in read_pages(self._client.list_container_instances, cluster=self._cluster):
                arns = page["containerInstanceArns"]
                if not arns:
                    continue
                answer = self._client.describe_container_instances(cluster=self._cluster, containerInstances=arns)
                _missing_arns(answer.get("failures", ()), doing)
                yield [observe_container_instance(machine) for machine in answer["containerInstances"]]

    def identify(self) -> str:
        """Return nothing: the name of a task is its ARN, which has the cluster in it."""
        return ""

    def find_daemon_services(self) -> frozenset[str]:
        with aws_errors("listing the DAEMON services of the cluster"):
            pages = read_pages(
                self._client.list_services, cluster=self._cluster, schedulingStrategy="DAEMON", maxResults=MAX_LISTED
            )
            return frozenset(arn.rpartition("/")[2] for page in pages for arn in page["serviceArns"])

    def find_tasks_of(self, attempt: AttemptKey) -> list[TaskObservation]:
        # `startedBy` can only be combined with the desired status, which is RUNNING by default.
        described = self.describe(tuple(self._list_tasks(startedBy=started_by(attempt))))
        unknown = [arn for arn, task in described.items() if task is None]
        # Listed but reported as MISSING: treating such a task as stopped could start a second one. "The Amazon ECS API
        # follows an eventual consistency model" (RunTask, Amazon ECS API Reference): that is no error, after which
        # pauses grow. Of several tasks one after the other may be MISSING.
        if unknown:
            reason = f"finding the tasks of {attempt}: ECS lists {', '.join(unknown)}, and describes them as MISSING"
            raise NotYetError(_DESCRIBED_IN_SECONDS, reason)
        return [task for task in described.values() if task is not None]

    def find_tasks_on(self, instance_id: str) -> list[TaskObservation]:
        arns = [arn for machine in self._find_machines(instance_id) for arn in self._list_tasks_on(machine)]
        return [task for task in self._describe_listed(arns) if task.phase is not TaskPhase.STOPPED]

    def drain(self, instance_id: str) -> None:
        machines = self._find_machines(instance_id, status="ACTIVE")
        if not machines:
            return
        doing = f"draining {instance_id}"
        with aws_errors(doing):
            answer = self._client.update_container_instances_state(
                cluster=self._cluster, containerInstances=machines, status="DRAINING"
            )
        _missing_arns(answer.get("failures", ()), doing)

    def find_node_of(self, instance_id: str) -> NodeObservation | None:
        # Of every status but INACTIVE.
        arns = self._find_machines(instance_id)
        if not arns:
            return None
        # An instance whose agent lost its state registers twice (aws/amazon-ecs-agent#782).
        nodes = self._describe_nodes(arns, f"describing the container instances of {instance_id}")
        return max(nodes, key=lambda each: (each.is_active, str(each.registered_at or "")), default=None)

    def deregister(self, node: str) -> None:
        with aws_errors(f"deregistering {node}"):
            try:
                self._client.deregister_container_instance(cluster=self._cluster, containerInstance=node, force=True)
            except ClientError as error:
                if not _is_not_found(error):
                    raise

    def _find_machines(self, instance_id: str, **filters: Any) -> list[str]:
        with aws_errors(f"finding the container instance of {instance_id}"):
            call = self._client.list_container_instances
            machine_filter = ec2_instance_is(instance_id)
            pages = read_pages(call, cluster=self._cluster, filter=machine_filter, **filters)
            return [arn for page in pages for arn in page["containerInstanceArns"]]

    def find_gpus(self, instance_type: str, capacity_provider: str) -> list[GpuDevice]:
        return [gpu for machine in self._machines(instance_type, capacity_provider) for gpu in observe_gpus(machine)]

    def find_remaining_resources(
        self, instance_type: str, capacity_provider: str, instance_id: str = ""
    ) -> list[RemainingResources]:
        machines = self._machines(instance_type, capacity_provider, instance_id)
        return [read_remaining_resources(machine) for machine in machines]

    def _machines(self, instance_type: str, capacity_provider: str, instance_id: str = "") -> list[Mapping[str, Any]]:
        machine_filter = ec2_instance_is(instance_id) if instance_id else instance_type_is(instance_type)
        with aws_errors(f"looking at the machines of {instance_type}"):
            listed = self._client.list_container_instances(
                cluster=self._cluster, filter=machine_filter, status="ACTIVE", maxResults=MAX_DESCRIBED
            )["containerInstanceArns"]
            if not listed:
                return []
            machines = self._client.describe_container_instances(cluster=self._cluster, containerInstances=listed)
        # An instance that was deregistered in between is among the failures, and ignored.
        return [
            machine
            for machine in machines["containerInstances"]
            if (machine.get("capacityProviderName") or "") == capacity_provider
        ]

    def find_node(self, node: str) -> NodeObservation | None:
        return next(iter(self._describe_nodes([node], f"describing container instance {node}")), None)

    def _describe_nodes(self, arns: Sequence[str], doing: str) -> list[NodeObservation]:
        with aws_errors(doing):
            response = self._client.describe_container_instances(cluster=self._cluster, containerInstances=list(arns))
        _missing_arns(response.get("failures", ()), doing)
        return [observe_container_instance(machine) for machine in response["containerInstances"]]

    def _is_here(self, arn: str) -> bool:
        """Return whether a task is in the cluster: ECS refuses a whole call for one that is not. Old ARNs name none."""
        parts = arn.split("/")
        return len(parts) != 3 or parts[1] == self._cluster

    def _describe_page(self, arns: Sequence[str]) -> dict[str, TaskObservation | None]:
        doing = f"describing {len(arns)} tasks"
        with aws_errors(doing):
            response = self._client.describe_tasks(cluster=self._cluster, tasks=list(arns))
        tasks = [observe_task(task) for task in response["tasks"]]
        missing = _missing_arns(response.get("failures", ()), doing)
        observed: dict[str, TaskObservation | None] = {task.task_id: task for task in tasks} | dict.fromkeys(missing)
        unanswered = [arn for arn in arns if arn not in observed]
        # Treating a task without an answer as stopped could start a second one.
        if unanswered:
            raise TransientError(f"{doing}: ECS said nothing of {', '.join(unanswered)}")
        return {arn: observed[arn] for arn in arns}

    def _describe_listed(self, arns: Iterable[str]) -> list[TaskObservation]:
        return [task for task in self.describe(tuple(arns)).values() if task is not None]

    def _list_tasks(self, **filters: str) -> Iterator[str]:
        # RUNNING first: a task that stops between the two requests is in both lists; in the other order, in neither.
        for status in ("RUNNING", "STOPPED"):
            with aws_errors(f"listing {status} tasks of {', '.join(filters.values())}"):
                call = self._client.list_tasks
                for page in read_pages(call, cluster=self._cluster, desiredStatus=status, **filters):
                    yield from page["taskArns"]

    def _list_tasks_on(self, container_instance_arn: str) -> list[str]:
        try:
            return list(self._list_tasks(containerInstance=container_instance_arn))
        except PermanentError as error:
            # The instance was deregistered since it was listed, so its tasks have stopped.
            if isinstance(error.__cause__, ClientError) and _is_not_found(error.__cause__):
                return []
            raise


def _is_not_found(error: ClientError) -> bool:
    """Return whether the task or container instance is not found; for the cluster there is another error code."""
    message = str(error.response.get("Error", {}).get("Message", ""))
    return error_code(error) in _UNKNOWN_TASK_CODES and "not found" in message.lower()


def _missing_arns(failures: Iterable[Mapping[str, Any]], doing: str) -> list[str]:
    others = [failure for failure in failures if failure.get("reason") != _MISSING]
    if others:
        raise TransientError(f"{doing}: {', '.join(str(failure.get('reason')) for failure in others)}")
    return [failure["arn"] for failure in failures]
