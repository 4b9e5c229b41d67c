"""What CloudFormation makes in the emulator, as the ECS simulator knows it."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from relaunch_local.ecs import BOOT_ATTRIBUTE, EcsSimulator, LaunchTemplate, LaunchTemplateVersion
from relaunch_local.stack.emulator import REGION, Emulator
from relaunch_local.stack.new_account_quotas import TARGET_PREFIX, NewAccountQuotas

_CLUSTER = re.compile(r"\bCLUSTER=([A-Za-z0-9_-]+)")
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class AccountMirror:
    """Implements Upstream for the emulator, as the root user."""

    emulator: Emulator
    simulator: EcsSimulator
    quotas: NewAccountQuotas = field(default_factory=NewAccountQuotas)

    def call(self, target: str, parameters: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        return self.quotas.call(target.removeprefix(TARGET_PREFIX), parameters)

    def refresh(self) -> None:
        clusters = [arn.rpartition("/")[2] for arn in self.emulator.client("ecs").list_clusters()["clusterArns"]]
        ec2 = self.emulator.client("ec2")
        subnets = {each["SubnetId"]: each["AvailabilityZone"] for each in ec2.describe_subnets()["Subnets"]}
        templates = [self._launch_template(each) for each in ec2.describe_launch_templates()["LaunchTemplates"]]
        with self.simulator.clock.lock:
            # A stack that was removed has taken its cluster with it.
            for name in set(self.simulator.clusters.clusters).difference(clusters):
                del self.simulator.clusters.clusters[name]
            for name in clusters:
                request = {"clusterName": name}
                self.simulator.call("CreateCluster", request, access_key=self.emulator.root.access_key_id)
            self.simulator.fleets.pools.subnets.update(subnets)
            for template in templates:
                self.simulator.fleets.templates.put(template)

    def ec2(self, form: bytes) -> tuple[int, bytes]:
        url = f"{self.emulator.endpoint_url}/"
        request = AWSRequest(
            "POST",
            url,
            headers={"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
            data=form,
        )
        root = Credentials(self.emulator.root.access_key_id, self.emulator.root.secret_access_key)
        SigV4Auth(root, "ec2", REGION).add_auth(request)
        signed = Request(url, data=form, headers=dict(request.headers), method="POST")  # noqa: S310 - the emulator's own URL
        try:
            with urlopen(signed, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
                return HTTPStatus.OK, answer.read()
        except HTTPError as error:
            return error.code, error.read()

    def _launch_template(self, found: Mapping[str, Any]) -> LaunchTemplate:
        versions = self.emulator.client("ec2").describe_launch_template_versions(
            LaunchTemplateId=found["LaunchTemplateId"]
        )["LaunchTemplateVersions"]
        in_order = sorted(versions, key=lambda each: int(each["VersionNumber"]))
        return LaunchTemplate(
            found["LaunchTemplateId"],
            found["LaunchTemplateName"],
            tuple(self._version(each["LaunchTemplateData"]) for each in in_order),
        )

    def _version(self, data: Mapping[str, Any]) -> LaunchTemplateVersion:
        user_data = base64.b64decode(data.get("UserData", "")).decode()
        cluster = _CLUSTER.search(user_data)
        profile = data["IamInstanceProfile"]["Arn"]
        roles = self.emulator.client("iam").get_instance_profile(InstanceProfileName=profile.rpartition("/")[2])
        return LaunchTemplateVersion(
            image_id=data["ImageId"],
            cluster=cluster[1] if cluster else "default",
            has_user_data=bool(user_data),
            reports_boot=BOOT_ATTRIBUTE in user_data,
            instance_profile_arn=profile,
            instance_role_arn=roles["InstanceProfile"]["Roles"][0]["Arn"],
            http_tokens=data["MetadataOptions"]["HttpTokens"],
        )
