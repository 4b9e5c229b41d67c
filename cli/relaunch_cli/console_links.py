"""Links to the AWS Management Console: of a task, its log stream, and the instance it runs on.

AWS documents none of them; they are those that the console itself shows (docs/unverified.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote

# The console of the partitions that an ARN names ("Sign in to the AWS Management Console"; AWS GovCloud and China have
# their own).
_DOMAINS: Mapping[str, str] = MappingProxyType(
    {"aws": "console.aws.amazon.com", "aws-cn": "console.amazonaws.cn", "aws-us-gov": "console.amazonaws-us-gov.com"}
)


@dataclass(frozen=True, slots=True)
class TaskConsole:
    """The console of the partition, the region and the cluster of a task on ECS."""

    domain: str
    region: str
    cluster: str
    task: str

    @classmethod
    def of(cls, task_arn: str) -> "TaskConsole":
        """Return the console of a task: `arn:aws:ecs:<region>:<account>:task/<cluster>/<id>`."""
        _, partition, _, region, _, resource = task_arn.split(":", 5)
        _, cluster, task = resource.split("/")
        return cls(_DOMAINS.get(partition, _DOMAINS["aws"]), region, cluster, task)

    def task_link(self) -> str:
        """Return the link of the task."""
        path = f"ecs/v2/clusters/{quote(self.cluster, '')}/tasks/{quote(self.task, '')}/configuration"
        return f"https://{self.region}.{self.domain}/{path}?region={self.region}"

    def instance_link(self, instance_id: str) -> str:
        """Return the link of an EC2 instance."""
        return f"{self._home('ec2', self.region)}#InstanceDetails:instanceId={quote(instance_id, '')}"

    def log_link(self, group: str, stream: str, region: str | None) -> str:
        """Return the link of a log stream; `region` is None for that of the task."""
        home = self._home("cloudwatch", region or self.region)
        return f"{home}#logsV2:log-groups/log-group/{_twice(group)}/log-events/{_twice(stream)}"

    def _home(self, service: str, region: str) -> str:
        return f"https://{region}.{self.domain}/{service}/home?region={region}"


def _twice(name: str) -> str:
    """Quote a name as CloudWatch's console does behind the `#`: twice, with `$` for the second `%`."""
    return quote(quote(name, ""), "").replace("%", "$")
