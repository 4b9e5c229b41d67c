"""Seeded identifiers, and ARNs."""

import random
from dataclasses import dataclass

from relaunch_local.ecs.errors import refuse


class IdSource:
    """Generates identifiers in AWS's formats; the same seed gives the same sequence."""

    def __init__(self, seed: int | str = 0) -> None:
        """Start the sequence of this seed."""
        # Reproducible by design, not used for secrets.
        self._random = random.Random(seed)  # noqa: S311

    def hexadecimal(self, digits: int = 32) -> str:
        """Return a lower-case hexadecimal number of exactly this many digits."""
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"

    def uuid(self) -> str:
        """Return an identifier in the form 8-4-4-4-12."""
        text = self.hexadecimal()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def instance_id(self) -> str:
        """Return an EC2 instance id."""
        return f"i-{self.hexadecimal(17)}"


@dataclass(frozen=True, slots=True)
class Arns:
    """The ARNs of an account in a region."""

    account: str
    region: str

    def refuse_foreign(self, name_or_arn: str) -> None:
        """Raise InvalidParameterException for an ARN of another account or region."""
        region, account = self._owner(name_or_arn)
        refuse(account != self.account, "AccountIDs mismatch")
        refuse(region != self.region, f"Identifier is for {region}. Your region is {self.region}")

    def own_id(self, cluster: str, id_or_arn: str) -> str:
        """Return the id of a task or container instance; raises InvalidParameterException for another owner's ARN."""
        region, account = self._owner(id_or_arn)
        refuse(account != self.account, f"Identifier is for {account}. Your accountId is {self.account}")
        # The text for regions is unknown: it follows that for accounts.
        refuse(region != self.region, f"Identifier is for {region}. Your region is {self.region}")
        parts = id_or_arn.split("/")
        # The old format of ARNs does not name the cluster.
        other = parts[1] if len(parts) == 3 else cluster
        refuse(other != cluster, f"Invalid identifier: Identifier is for cluster {other}. Your cluster is {cluster}")
        return parts[-1]

    def _owner(self, name_or_arn: str) -> tuple[str, str]:
        """Return the region and the account of an ARN, or our own."""
        parts = name_or_arn.split(":", 5)
        return (parts[3], parts[4]) if parts[0] == "arn" and len(parts) == 6 else (self.region, self.account)

    def _ecs(self, resource: str) -> str:
        return f"arn:aws:ecs:{self.region}:{self.account}:{resource}"

    def cluster(self, name: str) -> str:
        """Return the ARN of a cluster."""
        return self._ecs(f"cluster/{name}")

    def task(self, cluster: str, task_id: str) -> str:
        """Return the ARN of a task, in the long format."""
        return self._ecs(f"task/{cluster}/{task_id}")

    def container(self, cluster: str, task_id: str, container_id: str) -> str:
        """Return the ARN of a container of a task."""
        return self._ecs(f"container/{cluster}/{task_id}/{container_id}")

    def container_instance(self, cluster: str, instance: str) -> str:
        """Return the ARN of a container instance, in the long format."""
        return self._ecs(f"container-instance/{cluster}/{instance}")

    def service(self, cluster: str, name: str) -> str:
        """Return the ARN of a service, in the long format."""
        return self._ecs(f"service/{cluster}/{name}")

    def task_definition(self, family: str, revision: int | str) -> str:
        """Return the ARN of a task definition."""
        return self._ecs(f"task-definition/{family}:{revision}")

    def capacity_provider(self, name: str) -> str:
        """Return the ARN of a capacity provider."""
        return self._ecs(f"capacity-provider/{name}")

    def instance(self, instance_id: str) -> str:
        """Return the ARN of an EC2 instance."""
        return self.ec2(f"instance/{instance_id}")

    def ec2(self, resource: str) -> str:
        """Return the ARN of an EC2 resource such as `subnet/subnet-1`."""
        return f"arn:aws:ec2:{self.region}:{self.account}:{resource}"

    def image(self, image_id: str) -> str:
        """Return the ARN of an image; it names no account."""
        return f"arn:aws:ec2:{self.region}::image/{image_id}"

    def parameter(self, name: str) -> str:
        """Return the ARN of a Systems Manager parameter; a public one, under `/aws/`, is of no account."""
        account = "" if name.startswith("/aws/") else self.account
        return f"arn:aws:ssm:{self.region}:{account}:parameter/{name.lstrip('/')}"

    def auto_scaling_group(self, name: str, group_id: str) -> str:
        """Return the ARN of an Auto Scaling group."""
        return (
            f"arn:aws:autoscaling:{self.region}:{self.account}:autoScalingGroup:{group_id}:autoScalingGroupName/{name}"
        )


def last_part(arn_or_name: str) -> str:
    """Return what follows the last slash of an ARN, or the whole name."""
    return arn_or_name.rsplit("/", 1)[-1]
