"""Recommended AMIs from the public parameters of ECS in SSM Parameter Store."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from relaunch.adapters.aws.errors import aws_errors
from relaunch.core.offerings.instance_types import Ami, AmiKind, AmiSystem, ami_parameter

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient


class SsmAmis:
    """Implements AmiSource for one region."""

    def __init__(self, client: "SSMClient", region: str) -> None:
        self._client = client
        self.region = region

    def recommended(self, kinds: Iterable[AmiKind], system: AmiSystem) -> list[Ami]:
        wanted = {kind: ami_parameter(kind, system) for kind in kinds}
        names = [name for parameter in wanted.values() for name in (parameter, f"{parameter}/image_id")]
        with aws_errors(f"reading the recommended images of {self.region}"):
            # GetParameters takes up to ten names; there are at most four.
            answer = self._client.get_parameters(Names=names)
        values = {each["Name"]: each["Value"] for each in answer["Parameters"]}
        return [self._read(kind, system, parameter, values) for kind, parameter in wanted.items()]

    def _read(self, kind: AmiKind, system: AmiSystem, parameter: str, values: dict[str, str]) -> Ami:
        members = _read_value(values.get(parameter, ""))
        return Ami(
            kind=kind,
            system=system,
            region=self.region,
            parameter=parameter,
            image_id=members.get("image_id") or values.get(f"{parameter}/image_id"),
            image_name=members.get("image_name"),
            agent_version=members.get("ecs_agent_version"),
            runtime_version=members.get("ecs_runtime_version"),
            # No parameter has the driver version yet.
            driver_version=next((members[key] for key in sorted(members) if "driver" in key), None),
        )


def _read_value(value: str) -> dict[str, Any]:
    """Return the members of a JSON object; empty for other values, because the AMI ID has its own parameter too."""
    try:
        members = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}
