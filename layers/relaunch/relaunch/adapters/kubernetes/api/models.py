"""What the Kubernetes API answers: the fields that are used, of Job, Pod, Node, Event, ConfigMap, Status and version.

Other fields are left out. Absent lists, maps and objects are empty, as in the API; absent times are None. Quantities
stay the text that the server writes (`400`, `15Gi`, `500m`).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from relaunch.adapters.validation import Words
from relaunch.core.records import dataclass

Value = TypeVar("Value")
# The start of a container that never ran is that of 1970 (observation.py).
_FIRST_YEAR = 1970
_LAST_YEAR = 2500
# Servers write `null` for empty lists and maps here and there (`items`, `conditions`).
Items = Annotated[tuple[Value, ...], BeforeValidator(lambda value: value or ())]
Texts = Annotated[dict[str, str], BeforeValidator(lambda value: value or {})]
# What no server writes, a time without a zone or of another era, is left out: nothing can be reckoned with it.
Time = Annotated[datetime | None, AfterValidator(lambda value: value if _is_plausible(value) else None)]
Quantities = Annotated[dict[str, str], BeforeValidator(lambda value: _to_texts(value or {}))]


def _is_plausible(at: datetime | None) -> bool:
    return at is not None and at.tzinfo is not None and _FIRST_YEAR <= at.year <= _LAST_YEAR


def _to_texts(value: object) -> object:
    return {key: str(each) for key, each in value.items()} if isinstance(value, Mapping) else value


class Model(BaseModel):
    """A part of an answer; values of an invalid answer stay out of the error."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore", hide_input_in_errors=True
    )


class OwnerReference(Model):
    """What an object belongs to; `controller`: the owner manages it."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(Model):
    """The metadata of an object; `resource_version` is opaque and has no order."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: Time = None
    deletion_timestamp: Time = None
    deletion_grace_period_seconds: int | None = None
    labels: Texts = Field(default_factory=dict)
    annotations: Texts = Field(default_factory=dict)
    owner_references: Items[OwnerReference] = ()


class Condition(Model):
    """A condition of a Job, Pod or Node; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: Words = ""
    last_transition_time: Time = None

    @property
    def is_true(self) -> bool:
        """Whether the condition holds."""
        return self.status == "True"


class Resources(Model):
    """The resources of a container, in quantities."""

    limits: Quantities = Field(default_factory=dict)
    requests: Quantities = Field(default_factory=dict)


class Container(Model):
    """A container of a pod as it was specified; an init container with `restart_policy` Always is a sidecar."""

    name: str
    image: str = ""
    restart_policy: str = ""
    resources: Resources = Resources()


class PodToleration(Model):
    """A taint that keeps the pod from no node: of a key, or of all; `operator` is Equal or Exists."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PodSpec(Model):
    """What a pod was asked to be; `node_name` is empty until it is scheduled."""

    node_name: str = ""
    containers: Items[Container] = ()
    init_containers: Items[Container] = ()
    node_selector: Texts = Field(default_factory=dict)
    tolerations: Items[PodToleration] = ()
    termination_grace_period_seconds: int | None = None


class StateWaiting(Model):
    """A container that waits; `reason` is such as ContainerCreating, ImagePullBackOff."""

    reason: str = ""
    message: Words = ""


class StateRunning(Model):
    """A container that runs."""

    started_at: Time = None


class StateTerminated(Model):
    """A container that ended; `reason` is Completed, Error or OOMKilled."""

    exit_code: int
    signal: int | None = None
    reason: str = ""
    message: Words = ""
    started_at: Time = None
    finished_at: Time = None


class ContainerState(Model):
    """The state of a container: one of the three, none before anything is known."""

    waiting: StateWaiting | None = None
    running: StateRunning | None = None
    terminated: StateTerminated | None = None


class ContainerStatus(Model):
    """The status of a container; `image_id` names the digest that runs."""

    name: str
    image: str = ""
    image_id: str = Field(default="", alias="imageID")
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Model):
    """The status of a pod; `phase` is Pending, Running, Succeeded, Failed or Unknown, `reason` such as Evicted."""

    phase: str = ""
    reason: str = ""
    message: Words = ""
    start_time: Time = None
    conditions: Items[Condition] = ()
    container_statuses: Items[ContainerStatus] = ()
    init_container_statuses: Items[ContainerStatus] = ()


class Pod(Model):
    """A pod."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def find_condition(self, kind: str) -> Condition | None:
        """Return the condition of a type (PodScheduled, DisruptionTarget), None if it is not set."""
        return next((each for each in self.status.conditions if each.type == kind), None)


class PodTemplate(Model):
    """The template of a Job's pods."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class JobSpec(Model):
    """What a Job was asked to be; a server that does not know a field has dropped it: it is None then."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool | None = None
    pod_failure_policy: dict[str, Any] | None = None
    template: PodTemplate = PodTemplate()


class JobStatus(Model):
    """The status of a Job; the counts are of pods, `completed_indexes` is such as `0,2-4`."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = ""
    start_time: Time = None
    completion_time: Time = None
    conditions: Items[Condition] = ()


class Job(Model):
    """A Job."""

    metadata: Metadata
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    def find_condition(self, kind: str) -> Condition | None:
        """Return the condition of a type (Complete, Failed), None if it is not set."""
        return next((each for each in self.status.conditions if each.type == kind), None)


class RawObject(Model):
    """An object of any kind, with the fields that the server wrote."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    metadata: Metadata

    def field(self, name: str) -> Any:
        """Return a field of the object, None if it has none of this name."""
        return (self.model_extra or {}).get(name)


class Taint(Model):
    """What keeps pods from a node; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str = ""


class NodeSpec(Model):
    """What a node was asked to be."""

    unschedulable: bool = False
    provider_id: str = Field(default="", alias="providerID")
    taints: Items[Taint] = ()


class NodeStatus(Model):
    """What a node has, and how much of it pods may use."""

    capacity: Quantities = Field(default_factory=dict)
    allocatable: Quantities = Field(default_factory=dict)
    conditions: Items[Condition] = ()


class Node(Model):
    """A node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet says that it can run pods."""
        return any(each.type == "Ready" and each.is_true for each in self.status.conditions)


class InvolvedObject(Model):
    """What an event is about."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class Event(Model):
    """Something that happened to an object; `count` is how often. Servers keep events for an hour by default."""

    metadata: Metadata
    involved_object: InvolvedObject
    type: str = ""
    reason: str = ""
    message: Words = ""
    count: int | None = None
    first_timestamp: Time = None
    last_timestamp: Time = None
    event_time: Time = None

    @property
    def at(self) -> datetime | None:
        """When it happened last; who reports in the new form sets `eventTime` alone."""
        return self.last_timestamp or self.event_time or self.first_timestamp or self.metadata.creation_timestamp


class StatusDetails(Model):
    """Details of a Status."""

    retry_after_seconds: int = 0


class Status(Model):
    """The answer to a request that failed; `message` is for people, `reason` for programs."""

    message: Words = ""
    reason: str = ""
    details: StatusDetails = StatusDetails()


class ListMetadata(Model):
    """The metadata of a page; `continue` is empty on the last one."""

    continue_token: str = Field(default="", alias="continue")


class ConfigMapTexts(Model):
    """What is read of a ConfigMap."""

    metadata: Metadata
    data: Texts = Field(default_factory=dict)


@dataclass(frozen=True)
class ConfigMap:
    """A ConfigMap as the server wrote it, all fields kept, so that replacing it changes nothing else."""

    document: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.document["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.document["metadata"]["namespace"])

    @property
    def data(self) -> Mapping[str, str]:
        """Its texts by key."""
        return self.document.get("data") or {}

    def with_value(self, key: str, value: str) -> "ConfigMap":
        """Return the ConfigMap with one key set, at the same resourceVersion."""
        return ConfigMap({**self.document, "data": {**self.data, key: value}})


@dataclass(frozen=True, order=True)
class ServerVersion:
    """The version of a server; vendors write `20+` for the minor version, the sign is left out."""

    major: int
    minor: int
    git_version: str

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> "ServerVersion":
        """Read the answer of /version.

        Raises:
            ValueError: it has no version.
        """
        numbers = [re.match(r"\d+", str(answer.get(key, ""))) for key in ("major", "minor")]
        if numbers[0] is None or numbers[1] is None:
            raise ValueError("major and minor are not numbers")
        return cls(int(numbers[0][0]), int(numbers[1][0]), str(answer.get("gitVersion", "")))
