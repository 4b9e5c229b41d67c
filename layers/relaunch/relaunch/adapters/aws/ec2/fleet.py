"""Machines of our own: instant EC2 Fleets, or RunInstances for several in a reservation, and their instances."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from relaunch.adapters.aws.ec2.create_fleet import answer_of_response, build_create_fleet, check_limits
from relaunch.adapters.aws.ec2.fleet_errors import answer_of_error
from relaunch.adapters.aws.ec2.instances import ask_about_each, is_impaired, read_instances
from relaunch.adapters.aws.ec2.spot_prices import read_history
from relaunch.adapters.aws.errors import AwsError, aws_errors
from relaunch.core.machines.events import (
    FleetAnswer,
    FleetRefused,
    InstanceObservation,
    InstanceState,
    Refusal,
    RefusalKind,
)
from relaunch.core.machines.groups import reservation_of_group
from relaunch.core.machines.machine import FleetRequest
from relaunch.core.machines.settings import MACHINE_TAG, STACK_TAG
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.offerings.reservations import Reservation
from relaunch.ports import Termination, TransientError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

NOT_SENT = "NotSent"
"""The code of the refusal of a request that breaks a limit; EC2 was not asked."""

_MAX_TERMINATED = 1000  # the maximum of TerminateInstances
_MAX_DESCRIBED = 100  # by ID, which has no pages; long answers time out
_PAGE_SIZE = 1000  # the maximum of DescribeInstances

_UNKNOWN_ID_CODES = ("InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed")
_LIVING = [str(state) for state in InstanceState if state is not InstanceState.TERMINATED]
_ENDED = (InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED)
# By the code of the error; None: not in its present state, so it is asked again.
_TERMINATIONS: Mapping[str, Termination | None] = MappingProxyType(
    {
        **dict.fromkeys(_UNKNOWN_ID_CODES, Termination.ABSENT),
        "UnauthorizedOperation": Termination.REFUSED,
        "OperationNotPermitted": Termination.REFUSED,  # termination protection
        "IncorrectInstanceState": None,
    }
)


class Ec2Fleet:
    """Implements MachineSource for one stack.

    `single_send` calls CreateFleet, or RunInstances for several machines in a reservation, and must send it once
    (SINGLE_SEND_CONFIG): an error of a repetition says nothing of the first send, so that the caller saves that the
    outcome may be unknown before it repeats the call. Then the client token is the same, and EC2 answers with what the
    first one launched. `client` makes all other calls, and may repeat them: they read, or are idempotent. Fleets are
    never deleted: when an instant fleet is, EC2 terminates its instances ("DeleteFleets", Amazon EC2 API Reference).
    """

    def __init__(self, client: "EC2Client", single_send: "EC2Client", stack: str) -> None:
        self._client = client
        self._single_send = single_send
        self._stack = stack

    def request(self, request: FleetRequest) -> FleetAnswer:
        violations = check_limits(request, self._stack)
        if violations:
            return FleetRefused((Refusal(RefusalKind.CONFIGURATION, NOT_SENT, "; ".join(violations)),))
        if (reservation := reservation_of_group(request)) is not None:
            return self._run_instances(request, reservation)
        try:
            response = self._single_send.create_fleet(**build_create_fleet(request))
        except AwsError as error:
            return answer_of_error(error)
        return answer_of_response(request, response)

    def _run_instances(self, request: FleetRequest, reservation: Reservation) -> FleetAnswer:
        # Few machines are launched so: a function starts without it.
        from relaunch.adapters.aws.ec2.run_instances import answer_of_instances, build_run_instances  # noqa: PLC0415

        try:
            response = self._single_send.run_instances(**build_run_instances(request, reservation))
        except AwsError as error:
            return answer_of_error(error, "RunInstances")
        return answer_of_instances(request, response)

    def find(self, machine_id: str) -> list[InstanceObservation]:
        # Not by client token: EC2 gives the instances of a fleet one of its own. Another stack may have a machine with
        # the same ID.
        with aws_errors(f"finding the instance of machine {machine_id}"):
            pages = self._read({f"tag:{MACHINE_TAG}": [machine_id], f"tag:{STACK_TAG}": [self._stack]})
            return [instance for page in pages for instance in page]

    def describe(self, instance_ids: Sequence[str]) -> Mapping[str, InstanceObservation | None]:
        described: dict[str, InstanceObservation | None] = {}
        with aws_errors(f"describing {len(instance_ids)} instances"):
            for ids in _parts(instance_ids, _MAX_DESCRIBED):
                described |= ask_about_each(ids, self._describe, dict.fromkeys(_UNKNOWN_ID_CODES))
        return {each: described[each] for each in instance_ids}

    def find_impaired(self, instance_ids: Sequence[str]) -> frozenset[str]:
        checked: dict[str, bool] = {}
        with aws_errors(f"looking at the status checks of {len(instance_ids)} instances"):
            for ids in _parts(instance_ids, _MAX_DESCRIBED):
                checked |= ask_about_each(ids, self._check_status, dict.fromkeys(_UNKNOWN_ID_CODES, False))
        return frozenset(each for each, is_impaired in checked.items() if is_impaired)

    def spot_prices(self, offering: OfferingKey, since: datetime) -> list[tuple[datetime, float]]:
        with aws_errors(f"reading the spot prices of {offering}"):
            return read_history(self._client, offering.instance_type, offering.zone or "", since)

    def list_instances(self) -> Iterator[Sequence[InstanceObservation]]:
        with aws_errors(f"listing the instances of stack {self._stack}"):
            yield from self._read({f"tag:{STACK_TAG}": [self._stack], "instance-state-name": _LIVING})

    def terminate(self, instance_ids: Sequence[str]) -> Mapping[str, Termination]:
        doing = f"terminating {len(instance_ids)} instances"
        ended: dict[str, Termination | None] = {}
        with aws_errors(doing):
            for ids in _parts(instance_ids, _MAX_TERMINATED):
                ended |= ask_about_each(ids, self._terminate, _TERMINATIONS)
        # EC2 refuses to terminate an instance that it forgets, because the tags that allowed it are gone already.
        doubtful = [each for each in instance_ids if ended[each] in (Termination.REFUSED, None)]
        for each, instance in self.describe(doubtful).items():
            if instance is None:
                ended[each] = Termination.ABSENT
            elif instance.state in _ENDED:
                ended[each] = Termination.ENDING
        later = [each for each in instance_ids if ended[each] is None]
        if later:
            raise TransientError(f"{doing}: EC2 does not terminate {', '.join(later)} in their present state")
        return {each: termination for each in instance_ids if (termination := ended[each])}

    def _describe(self, instance_ids: list[str]) -> dict[str, InstanceObservation | None]:
        pages = read_instances(self._client, InstanceIds=instance_ids)
        found = {instance.instance_id: instance for page in pages for instance in page}
        return {each: found.get(each) for each in instance_ids}

    def _check_status(self, instance_ids: list[str]) -> dict[str, bool]:
        # By ID there are no pages, and instances that do not run are left out.
        answer = self._client.describe_instance_status(InstanceIds=instance_ids)
        found = {each["InstanceId"]: is_impaired(each) for each in answer["InstanceStatuses"]}
        return {each: found.get(each, False) for each in instance_ids}

    def _read(self, filters: Mapping[str, list[str]]) -> Iterator[list[InstanceObservation]]:
        named = [{"Name": name, "Values": values} for name, values in filters.items()]
        return read_instances(self._client, Filters=named, MaxResults=_PAGE_SIZE)

    def _terminate(self, instance_ids: list[str]) -> dict[str, Termination | None]:
        self._client.terminate_instances(InstanceIds=instance_ids)
        return dict.fromkeys(instance_ids, Termination.ENDING)


def _parts(instance_ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (instance_ids[start : start + size] for start in range(0, len(instance_ids), size))
