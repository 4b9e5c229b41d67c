"""A simulated ECS region under a virtual clock, for tests."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from relaunch_local.ecs import (
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
from relaunch_local.iam.permission import Authorize

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
    """Return a valid container definition."""
    return {"name": "main", "image": "trainer:1", "cpu": 1_024, "memory": 2_048, "command": ["train"], **members}


def gpu(count: int | str = 1) -> list[dict[str, str]]:
    """Return a resource requirement of whole GPUs."""
    return [{"type": "GPU", "value": str(count)}]


def share(memory_mib: int = 2_048, percent: int | None = None) -> list[dict[str, Any]]:
    """Return a resource requirement of an NVIDIA MPS share."""
    limit = {} if percent is None else {"maxComputePercent": percent}
    return [{"type": "GPU", "sharingStrategy": {"nvidiaMps": {"memory": memory_mib, **limit}}}]


def member_of(expression: str) -> list[dict[str, str]]:
    """Return a placement constraint of the type memberOf."""
    return [{"type": "memberOf", "expression": expression}]


class SimulatedRegion:
    """A region with the cluster `c`; tasks run the family `train`, containers run `script`."""

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
        """Add a capacity provider to the cluster; return its name."""
        members = {"purchase": Purchase.SPOT, "zones": ("us-east-1a", "us-east-1b"), "max_size": 4, **spec}
        self.simulator.add_capacity_provider(
            name, AutoScalingGroup(f"{name}-asg", instance_type, **members), cluster="c"
        )
        return name

    def register(self, family: str = "train", *containers: dict[str, Any], **members: Any) -> dict[str, Any]:
        """Register a revision and return it."""
        definitions = list(containers) or [container()]
        answer = self.ecs.register_task_definition(family=family, containerDefinitions=definitions, **members)
        definition: dict[str, Any] = answer["taskDefinition"]
        return definition

    def run(self, provider: str | None = None, **members: Any) -> dict[str, Any]:
        """Call RunTask with a capacity provider, or with the launch type EC2."""
        request: dict[str, Any] = {"cluster": "c", "taskDefinition": "train", **members}
        if provider is None:
            request.setdefault("launchType", "EC2")
        else:
            request["capacityProviderStrategy"] = [{"capacityProvider": provider, "weight": 1}]
        answer: dict[str, Any] = self.ecs.run_task(**request)
        return answer

    def error_code(self, method: str, **request: Any) -> str:
        """Return the code of the error that this call raises."""
        return self.error(method, **request).partition(": ")[0]

    def error(self, method: str, **request: Any) -> str:
        """Return the code and the message of the error that this call raises."""
        with pytest.raises(ClientError) as caught:
            getattr(self.ecs, method)(**request)
        return "{Code}: {Message}".format(**caught.value.response["Error"])

    def run_one(self, provider: str | None = None, **members: Any) -> str:
        """Run one task and return its ARN."""
        tasks = self.run(provider, **members)["tasks"]
        assert len(tasks) == 1
        return str(tasks[0]["taskArn"])

    def task(self, arn: str) -> dict[str, Any]:
        """Return a task as DescribeTasks returns it."""
        answer = self.ecs.describe_tasks(cluster="c", tasks=[arn], include=["TAGS"])
        found: dict[str, Any] = answer["tasks"][0]
        return found

    def wait_for(self, arn: str, status: str) -> dict[str, Any]:
        """Advance the clock until the task has this status; return the task."""
        assert self.clock.run_until(lambda: self.task(arn)["lastStatus"] == status, 7_200.0)
        return self.task(arn)

    def instance(self, instance_type: str = "g5.xlarge", zone: str = "us-east-1a", **members: Any) -> str:
        """Launch an instance without a group, wait until it is registered, and return its id."""
        purchase = members.pop("purchase", Purchase.ON_DEMAND)
        instance_id = self.simulator.launch_instance(instance_type, purchase, zone, cluster="c", **members)
        self.clock.run_until(lambda: self.simulator.instance(instance_id).is_registered)
        return instance_id

    def instance_of(self, arn: str) -> str:
        """Return the id of the instance that a task is on."""
        instances = self.ecs.describe_container_instances(
            cluster="c", containerInstances=[self.task(arn)["containerInstanceArn"]]
        )
        return str(instances["containerInstances"][0]["ec2InstanceId"])

    def remaining(self, instance_id: str) -> dict[str, Any]:
        """Return the remaining resources of an instance by name."""
        instance = self.simulator.instance(instance_id)
        answer = self.ecs.describe_container_instances(cluster="c", containerInstances=[instance.arn])
        resources = answer["containerInstances"][0]["remainingResources"]
        return {
            each["name"]: each["integerValue"] if each["type"] == "INTEGER" else each["stringSetValue"]
            for each in resources
        }

    def details(self, detail_type: str) -> list[dict[str, Any]]:
        """Return the details of all events of a detail type, in order."""
        return [event["detail"] for event in self.events if event["detail-type"] == detail_type]
