"""Pydantic models of a definition file (`relaunch.yaml`), and their conversion to core types."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from relaunch.adapters.definition_file.accelerators import MOST, AcceleratorModel
from relaunch.adapters.definition_file.concurrency import ConcurrencyModel, check_group
from relaunch.adapters.definition_file.estimates import EstimateModel
from relaunch.adapters.definition_file.kubernetes import KubernetesModel
from relaunch.adapters.definition_file.kubernetes_values import TARGET_NAME
from relaunch.adapters.definition_file.links import Links
from relaunch.adapters.definition_file.notices import Notices, to_routes
from relaunch.adapters.definition_file.triggers import StrictModel, TriggerModel
from relaunch.adapters.definition_file.values import (
    Caller,
    CheckpointUri,
    ContainerName,
    DiskGib,
    Duration,
    EnvironmentName,
    Family,
    InputName,
    RegularExpression,
)
from relaunch.adapters.input_patterns import Re2Patterns
from relaunch.core.definitions.accelerator import Precision, PurchasePolicy, usual_purchase
from relaunch.core.definitions.definition import InputRule, JobDefinition, RetryRules
from relaunch.core.definitions.durations import write_duration
from relaunch.core.definitions.targets import WITH_PODS, Target
from relaunch.core.market.policies import DEFAULT_PADDING, DEFAULT_POLICY, PolicyName

DEFAULT_MAX_RUNTIME = timedelta(hours=48)
MOST_STEPS = 10**12
"""The highest step, as in requests of job_api."""
MOST_NODES = 32
"""The most nodes of a job: what is claimed for them fits into one transaction of DynamoDB, which takes 100 items."""
JOB_NAME_PATTERN = "[a-z][a-z0-9-]{0,47}"
WORK_MISSING = "how much work is left must be known: add `estimated_duration`, or `total_steps` with a `checkpoint`"


class InputModel(StrictModel):
    """One input a trigger or a caller may give; reaches the training as `RELAUNCH_INPUT_<NAME>`."""

    pattern: RegularExpression
    """Regular expression that the whole value must match (RE2: without back references and look-around)."""
    default: str | None = None
    """Value when none is given; without it the input is required."""

    @field_validator("default")
    @classmethod
    def check_default(cls, default: str | None, info: ValidationInfo) -> str | None:
        """Reject a default that does not match the pattern."""
        pattern = info.data.get("pattern")
        if default is not None and pattern is not None and not Re2Patterns().matches(pattern, default):
            raise ValueError(f"`{default}` does not match its own pattern `{pattern}`")
        return default

    def to_core(self) -> InputRule:
        """Return the core type."""
        return InputRule(self.pattern, self.default)


ExitCode = Annotated[int, Field(ge=1, le=255)]


class RetryModel(StrictModel):
    """When a program that failed is started again, besides `max_failures`."""

    max_early_failures: int = Field(default=1, ge=0, le=MOST)
    """How many times in a row the program may fail within ten minutes, before any checkpoint, and be started again."""
    on_exit_codes: list[ExitCode] = Field(default_factory=list, min_length=1)
    """Exit codes that are retried up to `max_failures` times, however soon after the start."""
    never_on_exit_codes: list[ExitCode] = Field(default_factory=list, min_length=1)
    """Exit codes after which the job fails at once."""
    machine_exit_codes: list[ExitCode] = Field(default_factory=list, min_length=1)
    """Exit codes by which the program blames its machine: it goes on on another one, and that is no failure."""
    max_attempts_without_progress: int = Field(default=3, ge=1, le=MOST)
    """After so many attempts in a row that outlive the time between checkpoints and gain no step the job fails."""

    @field_validator("never_on_exit_codes", "machine_exit_codes")
    @classmethod
    def check_overlap(cls, codes: list[int], info: ValidationInfo) -> list[int]:
        """Reject an exit code that is in two lists."""
        for name, others in info.data.items():
            twice = sorted(set(codes) & set(others)) if isinstance(others, list) else []
            if twice:
                raise ValueError(f"{', '.join(map(str, twice))} is in `{name}` too: an exit code has one meaning")
        return codes

    def to_core(self) -> RetryRules:
        """Return the core type."""
        return RetryRules(
            self.max_early_failures,
            tuple(self.on_exit_codes),
            tuple(self.never_on_exit_codes),
            tuple(self.machine_exit_codes),
            self.max_attempts_without_progress,
        )


def _may_be_faster(estimate: EstimateModel, info: ValidationInfo) -> bool:
    """Return whether a job may run on another model than the one that was measured."""
    accelerator = info.data.get("accelerator")
    models = accelerator.to_core().models if accelerator is not None else ()
    return estimate.on is not None and models != (estimate.on.model,)


_ON_KUBERNETES = {"properties": {"target": {"enum": [each.value for each in WITH_PODS]}}, "required": ["target"]}


class JobModel(
    StrictModel,
    json_schema_extra={
        "if": _ON_KUBERNETES,
        "then": {"required": ["kubernetes"]},
        "else": {"required": ["task_definition"]},
    },
):
    """One job definition."""

    task_definition: Family = ""
    """ECS task definition family; the newest ACTIVE revision is used. Needed on `ecs`."""
    kubernetes: KubernetesModel | None = None
    """What the pod has on Kubernetes. Needed on every target but `ecs`."""
    container: ContainerName | None = None
    """The container whose exit code counts and that gets the overrides; needed with several containers."""
    on: list[TriggerModel] = Field(default_factory=list)
    """What starts a job; a job can always be started directly."""
    inputs: dict[InputName, InputModel] = Field(default_factory=dict)
    """Inputs that may be given; others are refused."""
    command: list[str] = Field(default_factory=list, min_length=1)
    """The container's command instead of the task definition's."""
    environment: dict[EnvironmentName, str] = Field(default_factory=dict)
    """Environment variables for the container, beside the task definition's."""
    accelerator: AcceleratorModel
    """What the machine must have."""
    nodes: int = Field(default=1, ge=1, le=MOST_NODES)
    """How many machines run the program at once, each with what `accelerator` says (docs/multi-node.md)."""
    disk: DiskGib | None = None
    """Least root volume of the machine: held against what CapacityProviders says, and reckoned with in the cost."""
    purchase: Literal[
        "spot",
        "on-demand",
        "spot-then-on-demand",
        "reserved",
        "reserved-then-spot",
        "reserved-then-on-demand",
        "reserved-then-spot-then-on-demand",
    ] = "spot-then-on-demand"
    """How machines may be bought; on acs `on-demand` by default."""
    checkpoint: CheckpointUri | None = None
    """Where the training leaves checkpoints; without it each attempt starts over."""
    max_runtime: Duration = DEFAULT_MAX_RUNTIME
    """Longest running time of a job, all attempts together."""
    estimated_duration: EstimateModel | None = None
    """How long the training takes on a machine that is never taken away: `{on: A10G, hours: 20}`, or `20h` anywhere."""
    precision: Literal["fp16", "bf16", "tf32", "fp32"] | None = None
    """What the program computes in: T4 and V100, for example, have tensor cores for FP16, and not for BF16."""
    total_steps: int | None = Field(default=None, ge=1, le=MOST_STEPS)
    """The step at which the training has finished, as its checkpoints count them; needs `checkpoint`."""
    deadline: Duration | None = None
    """Within which time after it was accepted the job should be done; needs `estimated_duration` or `total_steps`."""
    patience: Duration | None = None
    """Instead of a deadline: how long in all a job may wait for spot before it takes on-demand."""
    policy: Literal["cheapest", "uniform-progress", "greedy", "on-demand-first"] = DEFAULT_POLICY.value
    """What chooses between spot, on-demand and waiting, for a job with `deadline` or `patience`."""
    padding: float = Field(default=DEFAULT_PADDING, ge=0, le=1, allow_inf_nan=False)
    """By which share `estimated_duration` may be too low (`0.1`: 10 %) with the deadline still met."""
    max_running_jobs: int = Field(default=5, ge=1, le=MOST)
    """How many jobs of this definition may run at a time; others wait."""
    max_waiting_jobs: int = Field(default=1000, ge=1, le=MOST)
    """How many jobs of this definition may wait at a time; a further event starts none."""
    callers: list[Caller] = Field(default_factory=list, min_length=1, max_length=100)
    """The callers of job_api that may start a job, by ARN, or `invoke` for all who invoke it; all when left out."""
    notices: Notices = Field(default_factory=dict)
    """Receivers (`relaunch notices`) that are sent notices of its jobs; each may have the kinds that it gets."""
    links: Links = Field(default_factory=dict)
    """Pages of each job elsewhere, by name: https, with `{job_id}`, `{attempt}` and `{definition}` filled in."""
    concurrency: ConcurrencyModel | None = None
    """The group in which one job runs at a time, and the newest wins; without it jobs run side by side."""
    max_failures: int = Field(default=2, ge=0, le=MOST)
    """How many times the program may fail and be started again; interruptions do not count."""
    retry: RetryModel = Field(default_factory=RetryModel)
    """Which failures are retried, besides how many of them."""
    max_price_per_hour: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Highest price of one machine at its launch, in USD per hour; one on spot may cost more later, up to on-demand."""
    target: Annotated[Literal[*Target], TARGET_NAME] = Target.ECS  # type: ignore[valid-type]  # mypy takes no values that are computed
    """Where tasks run: Amazon ECS, a Kubernetes cluster (EKS, GKE, your own), or Alibaba Cloud's ACK or ACS."""

    @field_validator("nodes")
    @classmethod
    def check_nodes(cls, nodes: int, info: ValidationInfo) -> int:
        """Reject several nodes that would share a machine."""
        accelerator = info.data.get("accelerator")
        if nodes == 1 or accelerator is None:
            return nodes
        if accelerator.gpu is not None and accelerator.gpu.compute_percent:
            raise ValueError("each node has its machine for itself, so that a share of a GPU saves nothing there")
        if accelerator.neuron is not None:
            raise ValueError("a job with several nodes runs on GPUs: leave `neuron` out")
        return nodes

    @field_validator("concurrency")
    @classmethod
    def check_concurrency(cls, concurrency: ConcurrencyModel | None, info: ValidationInfo) -> ConcurrencyModel | None:
        """Reject a group whose placeholders stand for nothing."""
        return check_group(concurrency, info.data.get("inputs"))

    @field_validator("estimated_duration")
    @classmethod
    def check_estimate(cls, estimate: EstimateModel | None, info: ValidationInfo) -> EstimateModel | None:
        """Reject an estimate above max_runtime, unless another model may be faster."""
        limit = info.data.get("max_runtime")
        if estimate is None or limit is None or estimate.duration <= limit or _may_be_faster(estimate, info):
            return estimate
        shown = write_duration(limit) + (", its default" if limit == DEFAULT_MAX_RUNTIME else "")
        raise ValueError(
            f"{write_duration(estimate.duration)} is longer than max_runtime ({shown}): no job could finish"
        )

    @field_validator("total_steps")
    @classmethod
    def check_steps(cls, steps: int | None, info: ValidationInfo) -> int | None:
        """Reject steps that no checkpoint would count."""
        if steps is not None and "checkpoint" in info.data and info.data["checkpoint"] is None:
            raise ValueError("only checkpoints say which step a training has reached: add `checkpoint`")
        return steps

    @field_validator("deadline", "patience")
    @classmethod
    def check_work(cls, limit: timedelta | None, info: ValidationInfo) -> timedelta | None:
        """Reject a promise about a job whose work is not known."""
        known = [info.data.get(each, "invalid") for each in ("estimated_duration", "total_steps")]
        if limit is not None and not any(known):
            raise ValueError(WORK_MISSING)
        return limit

    @field_validator("patience")
    @classmethod
    def check_patience(cls, patience: timedelta | None, info: ValidationInfo) -> timedelta | None:
        """Reject patience beside a deadline, which says already how long a job may wait."""
        if patience is not None and info.data.get("deadline") is not None:
            raise ValueError("a job with a `deadline` waits for as long as that allows: give one of the two")
        return patience

    @field_validator("policy", "padding")
    @classmethod
    def check_use(cls, value: object, info: ValidationInfo) -> object:
        """Reject settings of the market policy for a job without a limit, for which none decides."""
        if not any(info.data.get(each, "invalid") for each in ("deadline", "patience")):
            raise ValueError(f"`{info.field_name}` is for a job with a `deadline` or with `patience`: add one of them")
        return value

    @field_validator("deadline")
    @classmethod
    def check_deadline(cls, deadline: timedelta | None, info: ValidationInfo) -> timedelta | None:
        """Reject a deadline that is shorter than the estimate, unless another model may be faster."""
        estimate = info.data.get("estimated_duration")
        if deadline is None or estimate is None or deadline >= estimate.duration or _may_be_faster(estimate, info):
            return deadline
        shown = write_duration(estimate.duration)
        raise ValueError(f"{write_duration(deadline)} is shorter than estimated_duration ({shown})")

    def to_core(self, name: str) -> JobDefinition:
        """Return the core type with this name."""
        usual = usual_purchase(self.target)
        return JobDefinition(
            name=name,
            task_definition=self.task_definition,
            accelerator=self.accelerator.to_core(),
            container=self.container,
            triggers=tuple(trigger.to_core() for trigger in self.on),
            inputs={key: rule.to_core() for key, rule in self.inputs.items()},
            command=tuple(self.command),
            environment=dict(self.environment),
            disk_gib=self.disk,
            purchase=PurchasePolicy(self.purchase) if "purchase" in self.model_fields_set else usual,
            checkpoint_uri=self.checkpoint,
            estimated_duration=self.estimated_duration.duration if self.estimated_duration else None,
            estimated_on=self.estimated_duration.measured_on if self.estimated_duration else None,
            precision=Precision(self.precision) if self.precision else None,
            total_steps=self.total_steps,
            deadline=self.deadline,
            patience=self.patience,
            policy=PolicyName(self.policy),
            padding=self.padding,
            max_runtime=self.max_runtime,
            max_running_jobs=self.max_running_jobs,
            max_waiting_jobs=self.max_waiting_jobs,
            callers=tuple(self.callers),
            notices=to_routes(self.notices),
            links=dict(self.links),
            concurrency=self.concurrency.to_core() if self.concurrency else None,
            max_failures=self.max_failures,
            retry=self.retry.to_core(),
            max_price_usd_per_hour=self.max_price_per_hour,
            target=self.target,
            kubernetes=self.kubernetes.to_core() if self.kubernetes else None,
            nodes=self.nodes,
        )
