"""Reads instances as EC2 describes them, and calls actions on instances of which some may not be known.

Sources: "DescribeInstances", "DescribeInstanceStatus" and "TerminateInstances" (Amazon EC2 API Reference).
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import error_code, error_message
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import InstanceObservation, InstanceState
from relaunch.core.machines.settings import MACHINE_TAG
from relaunch.core.offerings.offering import OfferingKey
from relaunch.ports import TransientError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceStatusTypeDef, InstanceTypeDef, StateReasonTypeDef

Answer = TypeVar("Answer")

_INSTANCE_ID = re.compile(r"i-[0-9a-f]+")


def read_instances(client: "EC2Client", **parameters: Any) -> Iterator[list[InstanceObservation]]:
    """Yield the pages of DescribeInstances; boto3's paginator would load another model file on a cold start.

    Raises:
        TransientError: a page has its own token as the next one, which would be an endless loop.
    """
    call: Callable[..., Any] = client.describe_instances
    token: str | None = None
    while True:
        page = call(**parameters, **({"NextToken": token} if token else {}))
        yield [observe_instance(each) for reservation in page["Reservations"] for each in reservation["Instances"]]
        previous, token = token, page.get("NextToken")
        if not token:
            return
        if token == previous:
            raise TransientError("EC2 answered a page with the token of that page")


def observe_instance(instance: "InstanceTypeDef") -> InstanceObservation:
    """Return what EC2 says of an instance; the reason of its state begins with EC2's code for it."""
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", ())}
    launched_at = instance.get("LaunchTime")
    return InstanceObservation(
        instance["InstanceId"],
        InstanceState(instance["State"]["Name"]),
        machine_id=tags.get(MACHINE_TAG, ""),
        offering=_offering(instance),
        launched_at=launched_at.astimezone(UTC) if launched_at else None,
        state_reason=_state_reason(instance.get("StateReason", {})),
    )


def is_impaired(status: "InstanceStatusTypeDef") -> bool:
    """Return whether a status check of an instance fails: of its host, of itself, or of its volumes.

    While EC2 has too few data, or checks for the first time, none does.
    """
    checks = (status.get("SystemStatus"), status.get("InstanceStatus"), status.get("AttachedEbsStatus"))
    return any(check is not None and check.get("Status") == "impaired" for check in checks)


def _offering(instance: "InstanceTypeDef") -> OfferingKey | None:
    instance_type = instance.get("InstanceType")
    zone = instance.get("Placement", {}).get("AvailabilityZone")
    if not instance_type or not zone:
        return None
    is_spot = instance.get("InstanceLifecycle") == "spot"
    return OfferingKey(instance_type, zone, PurchaseOption.SPOT if is_spot else PurchaseOption.ON_DEMAND)


def _state_reason(reason: "StateReasonTypeDef") -> str:
    code = reason.get("Code", "")
    message = reason.get("Message", "")
    # EC2's messages mostly begin with the code.
    return message if message.startswith(code) else f"{code}: {message}"


def ask_about_each(
    instance_ids: Sequence[str], call: Callable[[list[str]], Mapping[str, Answer]], answers: Mapping[str, Answer]
) -> dict[str, Answer]:
    """Return the answers to a call about instances, which fails as a whole for one of them.

    `answers` has the answer for an instance that fails the call, by error code. The call is repeated without those that
    the error names; if it names none, for each half, down to a single instance.

    Raises:
        ClientError: the call failed with another code.
    """
    answered: dict[str, Answer] = {}
    parts = deque([list(dict.fromkeys(instance_ids))])
    while parts:
        part = parts.popleft()
        if not part:
            continue
        try:
            answered.update(call(part))
        except ClientError as error:
            if error_code(error) not in answers:
                raise
            failing = part if len(part) == 1 else _named_in(error, part)
            answered.update(dict.fromkeys(failing, answers[error_code(error)]))
            parts.extend(_others(part, failing))
    return answered


def _named_in(error: ClientError, instance_ids: Sequence[str]) -> list[str]:
    named = set(_INSTANCE_ID.findall(error_message(error)))
    return [each for each in instance_ids if each in named]


def _others(instance_ids: list[str], failing: Sequence[str]) -> list[list[str]]:
    if failing:
        return [[each for each in instance_ids if each not in set(failing)]]
    middle = len(instance_ids) // 2
    return [instance_ids[:middle], instance_ids[middle:]]
