"""RunInstances: at least MinCount instances, or none and an error ("RunInstances", Amazon EC2 API Reference)."""

from dataclasses import dataclass, replace

from relaunch_local.ecs.engine.ec2_instances import Ec2Instances
from relaunch_local.ecs.engine.fleet import FleetFault, Fleets, tags_of
from relaunch_local.ecs.engine.fleet_offers import Offer, offer_of
from relaunch_local.ecs.engine.fleet_tokens import FleetTokens
from relaunch_local.ecs.engine.model import FleetMember, JsonObject
from relaunch_local.ecs.engine.pools import Room, message_of
from relaunch_local.ecs.engine.settings import Purchase
from relaunch_local.ecs.errors import EcsError
from relaunch_local.ecs.rules.fleet import ON_DEMAND_RESERVATION
from relaunch_local.ecs.rules.run_instances import InstancesRequest, parse_run_instances


@dataclass(slots=True)
class InstanceLaunches:
    """RunInstances, which launches from the same pools and reservations as fleets."""

    fleets: Fleets
    described: Ec2Instances
    tokens: FleetTokens

    def run(self, request: JsonObject, access_key: str = "") -> JsonObject:
        """RunInstances.

        Raises:
            EcsError: the request is invalid or not allowed; fewer than MinCount can be launched, and none is;
                IdempotentParameterMismatch; IdempotentInstanceTerminated: what the token launched has ended.
        """
        wanted = parse_run_instances(request)
        fleets = self.fleets
        offer = offer_of(wanted.place, Purchase.ON_DEMAND, fleets.templates, fleets.pools.subnets)
        offer = replace(offer, market=wanted.market)
        tags = tags_of(offer, wanted.tags)
        self._check_permissions(wanted, offer, tags, access_key)
        if request.get("DryRun"):
            raise EcsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
        answer = self.tokens.replay(request)
        if answer is None:
            answer = self._launch(wanted, offer, tags.get("instance", {}), request, access_key)
            self.tokens.remember(request, answer)
        else:
            self._check_living(answer)
        return answer

    def _check_permissions(
        self, wanted: InstancesRequest, offer: Offer, tags: dict[str, dict[str, str]], access_key: str
    ) -> None:
        permissions = self.fleets.permissions
        if permissions is None:
            return
        if not permissions.may_run(access_key, offer, tags, wanted.reservation_id):
            raise EcsError("UnauthorizedOperation", "You are not authorized to perform this operation.")
        if offer.image_parameter:
            permissions.check_image_parameters(access_key, [offer.image_parameter])

    def _launch(
        self, wanted: InstancesRequest, offer: Offer, tags: dict[str, str], request: JsonObject, access_key: str
    ) -> JsonObject:
        fleets = self.fleets
        if not fleets.limits.may_run_instances():
            raise EcsError("RequestLimitExceeded", "Request limit exceeded.")
        self._check_market(wanted)
        room = self._room(wanted, offer)
        member = FleetMember(
            "", request.get("ClientToken", ""), offer.template.instance_profile_arn, has_watchdog=False
        )
        launched = fleets.launch(offer, room.instances, tags, member, wanted.reservation_id, access_key)
        return self.described.reservation_of(launched)

    def _room(self, wanted: InstancesRequest, offer: Offer) -> Room:
        """Return how many are launched: the minimum at least, unless a fault launches a part."""
        fleets = self.fleets
        fault = fleets.faults.popleft() if fleets.faults else FleetFault()
        if fault.code:
            raise EcsError(fault.code, message_of(fault.code, offer.place))
        room = fleets.room_for(offer, wanted.total, wanted.reservation_id, wanted.market or ON_DEMAND_RESERVATION)
        if room.instances < wanted.minimum:
            raise EcsError(room.code, message_of(room.code, offer.place))
        return room if fault.launched is None else Room(min(room.instances, fault.launched))

    def _check_market(self, wanted: InstancesRequest) -> None:
        """Raise an error if a Capacity Block is not said to be one, or is none.

        Code and text for a block without its market type are those that users report
        (terraform-aws-modules/terraform-aws-ec2-instance#404); the other case is not documented.
        """
        if not wanted.reservation_id:
            return
        reservation = self.fleets.reservations.find(wanted.reservation_id)
        if reservation.is_block != bool(wanted.market):
            message = "The market type (purchasing) option is not valid. Choose a different market type and try again."
            raise EcsError("InvalidParameterValue", message)

    def _check_living(self, answer: JsonObject) -> None:
        ids = [each["InstanceId"] for each in answer["Instances"]]
        living = [each for each in map(self.fleets.instances.by_id.get, ids) if each is not None and each.is_alive]
        if not living:
            message = f"The instances of the client token have been terminated: {', '.join(ids)}."
            raise EcsError("IdempotentInstanceTerminated", message)
