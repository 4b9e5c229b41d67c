"""A small ECS region under a virtual clock, for tests."""

from collections.abc import Callable
from typing import Any

from relaunch_local.ecs import (
    Authorize,
    AutoScalingGroup,
    Clock,
    EcsSimulator,
    Event,
    InProcessClient,
    InstanceShape,
    ProcessSpec,
    Purchase,
    Script,
    ScriptedProcesses,
    SimulatorSettings,
    Timing,
)

INSTANCE_TYPES = {
    "g5.xlarge": InstanceShape(4, 16_384, gpus=1, gpu_memory_mib=22_888, gpu_name="A10G"),
    "g5.12xlarge": InstanceShape(48, 196_608, gpus=4, gpu_memory_mib=22_888, gpu_name="A10G"),
    "g6f.2xlarge": InstanceShape(8, 32_768, gpus=1, gpu_memory_mib=5_722, gpu_name="L4", gpu_partition=0.25),
    "p3.2xlarge": InstanceShape(8, 62_464, gpus=1, gpu_memory_mib=16_384, gpu_name="V100", has_gpu_sharing=False),
    "m7g.large": InstanceShape(2, 8_192, architecture="arm64"),
    "inf2.24xlarge": InstanceShape(96, 393_216, neuron_devices=6),
    "trn1.32xlarge": InstanceShape(128, 524_288, neuron_devices=16),
}
TASK_STATE_CHANGE = "ECS Task State Change"


def container(**members: Any) -> dict[str, Any]:
    """A container definition that holds."""
    return {"name": "main", "image": "trainer:1", "cpu": 1_024, "memory": 2_048, "command": ["train"], **members}


def gpu(count: int | str = 1) -> list[dict[str, str]]:
    """A requirement of whole GPUs."""
    return [{"type": "GPU", "value": str(count)}]


def share(memory_mib: int = 2_048, percent: int | None = None) -> list[dict[str, Any]]:
    """A requirement of a share of a GPU by NVIDIA MPS."""
    limit = {} if percent is None else {"maxComputePercent": percent}
    return [{"type": "GPU", "sharingStrategy": {"nvidiaMps": {"memory": memory_mib, **limit}}}]


class SimulatedRegion:
    """A cluster `c`, a family `train`, a client, the events, and a script per container."""

    def __init__(self, *, timing: Timing | None = None, authorize: Authorize | None = None, **settings: Any) -> None:
        self.clock = Clock()
        self.script: Callable[[ProcessSpec], Script] = lambda _spec: Script(runtime_seconds=600.0)
        self.processes = ScriptedProcesses(self.clock, self._script_of)
        self.events: list[Event] = []
        chosen = SimulatorSettings(instance_types=INSTANCE_TYPES, timing=timing or Timing(), **settings)
        self.simulator = EcsSimulator(
            self.clock, self.processes, chosen, authorize=authorize, on_event=self.events.append
        )
        self.ecs: Any = InProcessClient(self.simulator, access_key="AKIATEST")
        self.simulator.clusters.create({"clusterName": "c"})

    def _script_of(self, spec: ProcessSpec) -> Script:
        return self.script(spec)

    def provider(self, name: str = "g5-spot", instance_type: str = "g5.xlarge", **spec: Any) -> str:
        """A capacity provider of the cluster; answers its name."""
        members = {"purchase": Purchase.SPOT, "zones": ("us-east-1a", "us-east-1b"), "max_size": 4, **spec}
        self.simulator.add_capacity_provider(
            name, AutoScalingGroup(f"{name}-asg", instance_type, **members), cluster="c"
        )
        return name

    def register(self, family: str = "train", *containers: dict[str, Any], **members: Any) -> dict[str, Any]:
        """A new revision."""
        definitions = list(containers) or [container()]
        answer = self.ecs.register_task_definition(family=family, containerDefinitions=definitions, **members)
        definition: dict[str, Any] = answer["taskDefinition"]
        return definition

    def run(self, provider: str | None = None, **members: Any) -> dict[str, Any]:
        """RunTask on a provider, or with the launch type EC2."""
        request: dict[str, Any] = {"cluster": "c", "taskDefinition": "train", **members}
        if provider is None:
            request.setdefault("launchType", "EC2")
        else:
            request["capacityProviderStrategy"] = [{"capacityProvider": provider, "weight": 1}]
        answer: dict[str, Any] = self.ecs.run_task(**request)
        return answer

    def run_one(self, provider: str | None = None, **members: Any) -> str:
        """RunTask of one task, which must be accepted; answers its ARN."""
        tasks = self.run(provider, **members)["tasks"]
        assert len(tasks) == 1
        return str(tasks[0]["taskArn"])

    def task(self, arn: str) -> dict[str, Any]:
        """The task as DescribeTasks answers it."""
        answer = self.ecs.describe_tasks(cluster="c", tasks=[arn], include=["TAGS"])
        found: dict[str, Any] = answer["tasks"][0]
        return found

    def wait_for(self, arn: str, status: str) -> dict[str, Any]:
        """Let time pass until the task has this status."""
        assert self.clock.run_until(lambda: self.task(arn)["lastStatus"] == status, 7_200.0)
        return self.task(arn)

    def instance(self, instance_type: str = "g5.xlarge", zone: str = "us-east-1a", **members: Any) -> str:
        """A registered instance outside any group; answers its id."""
        purchase = members.pop("purchase", Purchase.ON_DEMAND)
        instance_id = self.simulator.launch_instance(instance_type, purchase, zone, cluster="c", **members)
        self.clock.run_until(lambda: self.simulator.instance(instance_id).is_registered)
        return instance_id

    def instance_of(self, arn: str) -> str:
        """The instance a task is on."""
        instances = self.ecs.describe_container_instances(
            cluster="c", containerInstances=[self.task(arn)["containerInstanceArn"]]
        )
        return str(instances["containerInstances"][0]["ec2InstanceId"])

    def remaining(self, instance_id: str) -> dict[str, Any]:
        """The free resources of an instance by name."""
        instance = self.simulator.instance(instance_id)
        answer = self.ecs.describe_container_instances(cluster="c", containerInstances=[instance.arn])
        resources = answer["containerInstances"][0]["remainingResources"]
        return {
            each["name"]: each["integerValue"] if each["type"] == "INTEGER" else each["stringSetValue"]
            for each in resources
        }

    def details(self, detail_type: str) -> list[dict[str, Any]]:
        """The details of all events of a kind, in order."""
        return [event["detail"] for event in self.events if event["detail-type"] == detail_type]
