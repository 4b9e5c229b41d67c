"""The permissions that EC2 calls require on instances (Service Authorization Reference, "Actions ... for Amazon EC2").

CreateFleet is checked on the fleet and its launch templates; each launch of the fleet as RunInstances of the caller.
Request tags are not seen on launch templates. DryRun passes without iam:PassRole.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relaunch_local.ecs.engine.fleet_offers import Offer
from relaunch_local.ecs.engine.identifiers import Arns
from relaunch_local.ecs.engine.instances import VPC_ID
from relaunch_local.ecs.errors import EcsError
from relaunch_local.iam.permission import Authorize, ContextValue, Permission

Tags = Mapping[str, Mapping[str, str]]
"""Tags by resource type."""

_DISK_KEY_ACTIONS = ("Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo")
_READING_IMAGES = ("ssm:GetParameter", "ssm:GetParameters")
_CREATED = ("instance", "volume", "network-interface")


@dataclass(frozen=True, slots=True)
class Ec2Permissions:
    """Asks for every permission that a call requires."""

    arns: Arns
    authorize: Authorize

    def check_create_fleet(
        self,
        access_key: str,
        tags: Tags,
        template_ids: Iterable[str],
        subnet_ids: Iterable[str],
        reservation_id: str = "",
    ) -> None:
        """Check CreateFleet as a whole; raises UnauthorizedOperation.

        What only a launch template names is checked as RunInstances; subnets are named by the request.
        """
        of_fleet = tags.get("fleet", {})
        fleet = self.arns.ec2("fleet/*")
        permissions = [Permission(access_key, "ec2:CreateFleet", fleet, _requested(of_fleet))]
        instance = self.arns.ec2("instance/*")
        of_instance = _requested(tags.get("instance", {}))
        permissions.append(Permission(access_key, "ec2:CreateFleet", instance, of_instance))
        permissions += [
            Permission(access_key, "ec2:CreateFleet", self.arns.ec2(f"subnet/{each}")) for each in subnet_ids
        ]
        permissions += [
            Permission(access_key, "ec2:CreateFleet", self.arns.ec2(f"launch-template/{each}")) for each in template_ids
        ]
        if reservation_id:
            named = self.arns.ec2(f"capacity-reservation/{reservation_id}")
            permissions.append(Permission(access_key, "ec2:CreateFleet", named))
        if of_fleet:
            permissions.append(self._tagging(access_key, fleet, of_fleet, "CreateFleet"))
        self._demand(permissions)

    def check_image_parameters(self, access_key: str, names: Iterable[str]) -> None:
        """Check that the caller may read the parameters that name images; raises SsmAccessDenied.

        Both actions are demanded: "Actions, resources, and condition keys for Amazon EC2" names ssm:GetParameters for
        RunInstances, and a user of CreateFleet was refused until the role had ssm:GetParameter
        (https://github.com/kent8192/reinhardt-web/issues/2027).
        """
        for name in names:
            arn = self.arns.parameter(name)
            needed = [Permission(access_key, action, arn) for action in _READING_IMAGES]
            if not all(map(self.authorize, needed)):
                raise EcsError("SsmAccessDenied", f"You are not authorized to read the parameter {name}.")

    def may_run(self, access_key: str, offer: Offer, tags: Tags, reservation_id: str = "") -> bool:
        """Return whether the caller may launch the instance of an offer, tag it and pass its role."""
        permissions = [*self._run(access_key, offer, tags)]
        if reservation_id:
            named = self.arns.ec2(f"capacity-reservation/{reservation_id}")
            permissions.append(Permission(access_key, "ec2:RunInstances", named))
        permissions += [
            self._tagging(access_key, self.arns.ec2(f"{kind}/*"), tags[kind], "RunInstances")
            for kind in _CREATED
            if tags.get(kind)
        ]
        role = offer.template.instance_role_arn
        if role:
            permissions.append(
                Permission(access_key, "iam:PassRole", role, {"iam:PassedToService": "ec2.amazonaws.com"})
            )
        return all(map(self.authorize, permissions))

    def may_use_disk_key(self, access_key: str, offer: Offer) -> bool:
        """Return whether the caller may let EC2 use the key of the root volume.

        EC2 launches the instance all the same, and terminates it ("Requirements for Amazon EBS encryption").
        """
        key = offer.template.disk_key_arn
        used = {"kms:ViaService": f"ec2.{self.arns.region}.amazonaws.com"}
        permissions = [Permission(access_key, f"kms:{action}", key, used) for action in _DISK_KEY_ACTIONS]
        granted = {**used, "kms:GrantIsForAWSResource": "true"}
        permissions.append(Permission(access_key, "kms:CreateGrant", key, granted))
        return not key or all(map(self.authorize, permissions))

    def check_terminate(self, access_key: str, tags_of: Mapping[str, Mapping[str, str]]) -> None:
        """Check TerminateInstances of instances with these tags; raises UnauthorizedOperation.

        What was terminated more than an hour ago has no tags.
        """
        self._demand(
            Permission(access_key, "ec2:TerminateInstances", self.arns.instance(instance_id), _resource_tags(tags))
            for instance_id, tags in tags_of.items()
        )

    def _run(self, access_key: str, offer: Offer, tags: Tags) -> Iterable[Permission]:
        template = self.arns.ec2(f"launch-template/{offer.template_id}")
        members = offer.override.members
        common = {"ec2:LaunchTemplate": template}
        market = offer.market or offer.place.purchase.value
        of_instance = {
            "ec2:InstanceType": offer.place.instance_type,
            "ec2:InstanceMarketType": market,
            "ec2:MetadataHttpTokens": offer.template.http_tokens,
            **({"ec2:InstanceProfile": profile} if (profile := offer.template.instance_profile_arn) else {}),
        }
        # Whether a resource is from the launch template is false for what an override names.
        named: list[tuple[str, Mapping[str, ContextValue], bool]] = [
            (template, {}, True),
            *((self.arns.ec2(f"{kind}/*"), _requested(tags.get(kind, {})), False) for kind in _CREATED[1:]),
            (self.arns.ec2("instance/*"), {**of_instance, **_requested(tags.get("instance", {}))}, False),
            (self.arns.ec2(f"subnet/{offer.place.subnet_id}"), {"ec2:Vpc": self.arns.ec2(f"vpc/{VPC_ID}")}, False),
            (self.arns.ec2("security-group/*"), {"ec2:Vpc": self.arns.ec2(f"vpc/{VPC_ID}")}, True),
            (self.arns.image(offer.image_id), {"ec2:Owner": "amazon"}, "ImageId" not in members),
        ]
        if market == "spot":
            # It has the keys of tags alone.
            yield Permission(
                access_key,
                "ec2:RunInstances",
                self.arns.ec2("spot-instances-request/*"),
                _requested(tags.get("spot-instances-request", {})),
            )
        for resource, context, is_from_template in named:
            own = {"ec2:IsLaunchTemplateResource": str(is_from_template).lower()}
            yield Permission(access_key, "ec2:RunInstances", resource, {**common, **own, **context})

    def _tagging(self, access_key: str, resource: str, tags: Mapping[str, str], action: str) -> Permission:
        return Permission(access_key, "ec2:CreateTags", resource, {"ec2:CreateAction": action, **_requested(tags)})

    def _demand(self, permissions: Iterable[Permission]) -> None:
        for permission in permissions:
            if not self.authorize(permission):
                message = (
                    f"You are not authorized to perform this operation. User: {permission.access_key} is not "
                    f"authorized to perform: {permission.action} on resource: {permission.resource}"
                )
                raise EcsError("UnauthorizedOperation", message)


def _requested(tags: Mapping[str, str]) -> dict[str, ContextValue]:
    named: dict[str, ContextValue] = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    return {**named, "aws:RequestTag/": None, "aws:TagKeys": tuple(tags) or None}


def _resource_tags(tags: Mapping[str, str]) -> dict[str, ContextValue]:
    prefixes = ("aws:ResourceTag/", "ec2:ResourceTag/")
    return {**dict.fromkeys(prefixes), **{prefix + key: value for key, value in tags.items() for prefix in prefixes}}
