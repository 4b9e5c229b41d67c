"""Builds RunInstances requests for several machines in one reservation, and maps responses to answers.

EC2 Fleet launches what is reserved in parts; RunInstances launches MinCount instances at least, or none. Sources:
"RunInstances" (Amazon EC2 API Reference); "Launch instances using Capacity Blocks" and "Launch instances into an
existing Capacity Reservation" (Amazon EC2 User Guide).
"""

from typing import TYPE_CHECKING, Any, cast

from relaunch.adapters.aws.ec2.create_fleet import launch_template_of, tags_of
from relaunch.core.machines.events import FleetAnswer, FleetUncertain, InstanceLaunched
from relaunch.core.machines.machine import FleetRequest
from relaunch.core.offerings.reservations import Reservation, ReservationType

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import ReservationResponseTypeDef, RunInstancesRequestTypeDef


def build_run_instances(request: FleetRequest, reservation: Reservation) -> "RunInstancesRequestTypeDef":
    """Return the parameters of RunInstances, identical for identical requests, as their client token requires.

    Instance and volume have the tags; there is no fleet. What a request says overrides the launch template. EC2 refuses
    a Capacity Block without its market type.
    """
    (override,) = request.overrides
    parameters: dict[str, Any] = {
        "ClientToken": request.client_token,
        "LaunchTemplate": launch_template_of(request),
        "InstanceType": override.offering.instance_type,
        "SubnetId": override.subnet_id,
        "MinCount": request.size,
        "MaxCount": request.size,
        "CapacityReservationSpecification": {
            "CapacityReservationTarget": {"CapacityReservationId": reservation.reservation_id}
        },
        "TagSpecifications": tags_of(request, "instance", "volume"),
    }
    if reservation.type is ReservationType.CAPACITY_BLOCK:
        parameters["InstanceMarketOptions"] = {"MarketType": reservation.type.value}
    return cast("RunInstancesRequestTypeDef", parameters)


def answer_of_instances(request: FleetRequest, response: "ReservationResponseTypeDef") -> FleetAnswer:
    """Return the answer of a response: all instances that it names, also of a repeated one, which names the same.

    They are of the one type in the one zone of the request.
    """
    instance_ids = [each["InstanceId"] for each in response.get("Instances", ()) if each.get("InstanceId")]
    if not instance_ids:
        return FleetUncertain("RunInstances answered with no instance and no error")
    first, *others = instance_ids
    return InstanceLaunched(first, request.overrides[0].offering, others=tuple(others))
