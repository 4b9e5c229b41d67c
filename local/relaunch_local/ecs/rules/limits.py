"""Token buckets: ECS's request buckets, each shared by several actions, and EC2's of what starts and ends instances.

Sources: "Request throttling for the Amazon ECS API"; "Request throttling for the Amazon EC2 API". CreateFleet's own
bucket is not published; that its launches take from RunInstances' is inferred from reports of karpenter's users.
"""

from dataclasses import dataclass
from datetime import datetime

from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.errors import EcsError, throttled

_RATES = {
    "task-modify": (100.0, 40.0),
    "task-read": (100.0, 20.0),
    "definition-modify": (20.0, 1.0),
    "definition-read": (50.0, 20.0),
    "provider-modify": (10.0, 1.0),
    "provider-read": (50.0, 20.0),
    "service-read": (100.0, 20.0),
    "cluster-modify": (20.0, 1.0),
    "cluster-read": (50.0, 20.0),
    "tag-modify": (20.0, 10.0),
    "tag-read": (20.0, 10.0),
}
"""Burst and sustained requests per second of each bucket."""

MACHINES = (1_000.0, 2.0)
"""Burst and refill per second of RunInstances' resource tokens: one per instance, also of fleets and groups."""

RUN_INSTANCES = (5.0, 2.0)
"""Burst and sustained requests per second of RunInstances, which each launch of a fleet takes from."""

_EC2_RATES = {"TerminateInstances": (100.0, 5.0)}

_BUCKET_OF = {
    "RunTask": "task-modify",
    "StopTask": "task-modify",
    "UpdateContainerInstancesState": "task-modify",
    "PutAttributes": "task-modify",
    "DeregisterContainerInstance": "task-modify",
    "DescribeTasks": "task-read",
    "ListTasks": "task-read",
    "DescribeContainerInstances": "task-read",
    "ListContainerInstances": "task-read",
    "ListServices": "service-read",
    "RegisterTaskDefinition": "definition-modify",
    "DeregisterTaskDefinition": "definition-modify",
    "DeleteTaskDefinitions": "definition-modify",
    "DescribeTaskDefinition": "definition-read",
    "ListTaskDefinitions": "definition-read",
    "ListTaskDefinitionFamilies": "definition-read",
    "CreateCapacityProvider": "provider-modify",
    "PutClusterCapacityProviders": "provider-modify",
    "DescribeCapacityProviders": "provider-read",
    "CreateCluster": "cluster-modify",
    "DescribeClusters": "cluster-read",
    "ListClusters": "cluster-read",
    "TagResource": "tag-modify",
    "UntagResource": "tag-modify",
    "ListTagsForResource": "tag-read",
}


def rate_of(action: str) -> tuple[float, float]:
    """Return the burst and the sustained requests per second of an action's bucket."""
    return _RATES[_BUCKET_OF[action]]


@dataclass(slots=True)
class _Bucket:
    burst: float
    rate: float
    tokens: float
    filled_at: datetime

    def left(self, now: datetime) -> int:
        self.tokens = min(self.burst, self.tokens + (now - self.filled_at).total_seconds() * self.rate)
        self.filled_at = now
        return int(self.tokens)

    def take(self, now: datetime) -> bool:
        if not self.left(now):
            return False
        self.tokens -= 1.0
        return True


class RequestLimits:
    """The token buckets of an account."""

    def __init__(self, clock: Clock, *, enabled: bool = True) -> None:
        """Start with full buckets; if `enabled` is false, nothing is throttled."""
        self.enabled = enabled
        self._clock = clock
        self._machines = _Bucket(*MACHINES, MACHINES[0], clock.now())
        self._run_instances = _Bucket(*RUN_INSTANCES, RUN_INSTANCES[0], clock.now())
        rates = {**_RATES, **_EC2_RATES}
        self._buckets = {name: _Bucket(burst, rate, burst, clock.now()) for name, (burst, rate) in rates.items()}

    def take(self, action: str) -> None:
        """Take a token for this action; raise ThrottlingException if the bucket is empty."""
        name = _BUCKET_OF.get(action)
        if self.enabled and name is not None and not self._buckets[name].take(self._clock.now()):
            raise throttled()

    def take_ec2(self, action: str) -> None:
        """Take a token for this EC2 action; raise RequestLimitExceeded if the bucket is empty."""
        if self.enabled and action in _EC2_RATES and not self._buckets[action].take(self._clock.now()):
            raise EcsError("RequestLimitExceeded", "Request limit exceeded.")

    def may_run_instances(self) -> bool:
        """Take a token for a RunInstances request; return False if the bucket is empty."""
        return not self.enabled or self._run_instances.take(self._clock.now())

    def may_launch_instance(self) -> bool:
        """Take a resource token for an instance; return False if the bucket is empty."""
        return not self.enabled or self._machines.take(self._clock.now())

    def launches_left(self, wanted: int) -> int:
        """Return for how many of so many instances there are resource tokens; it takes none."""
        return min(wanted, self._machines.left(self._clock.now())) if self.enabled else wanted

    def take_launches(self, instances: int) -> None:
        """Take the resource tokens of so many instances."""
        for _ in range(instances):
            self.may_launch_instance()
