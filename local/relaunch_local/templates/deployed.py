"""The stacks of one deployment as an account has them: every policy in them, and the ARNs of all that they have.

Names are those that CloudFormation gives: the name of the stack, the logical ID, and characters that tell it from
others.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relaunch_local.iam.policies import PolicyDocument, listed
from relaunch_local.templates.document import TemplateDocument, read_template
from relaunch_local.templates.physical import physical_values
from relaunch_local.templates.resolver import Resolver
from relaunch_local.templates.roles import policies_of_role

ACCOUNT = "111122223333"
_FILES = {
    "": "template.yaml",
    "-training": "infrastructure/training.yaml",
    "-training-resnet": "infrastructure/training-role.yaml",
    "-machines": "infrastructure/machines.yaml",
    "-github-acme-speech-0a1b2c": "infrastructure/github-repository.yaml",
}
_WHOSE = {"-training-resnet": " of resnet", "-github-acme-speech-0a1b2c": " of acme/speech"}
_GITHUB = "oidc-provider/token.actions.githubusercontent.com"


@dataclass(frozen=True)
class DeployedStacks:
    """The stacks of an application of this name, with everything on that a deployment can have.

    `separate` are the parameters that tell its task definitions and roles from those of others, and `family_prefix` is
    what its families begin with.
    """

    name: str
    separate: Mapping[str, str]
    family_prefix: str
    region: str = "us-east-1"

    def arn(self, service: str, resource: str, *, region: str | None = None) -> str:
        """Return an ARN of the account, in the region unless another one, which may be empty, is given."""
        return f"arn:aws:{service}:{self.region if region is None else region}:{ACCOUNT}:{resource}"

    @cached_property
    def roles(self) -> Mapping[str, Sequence[PolicyDocument]]:
        """The policies of each role, by its logical ID; those of a single training or repository say whose they are."""
        return {
            f"{role}{_WHOSE.get(end, '')}": policies_of_role(template, role, resolver)
            for end, (template, resolver) in self._resolved.items()
            for role in template.of_type("IAM::Role")
            if resolver.holds(template.resources[role].get("Condition"))
        }

    @cached_property
    def queue_policies(self) -> Mapping[str, PolicyDocument]:
        """The policies of queues, by their logical ID."""
        template, resolver = self._resolved[""]
        policies = template.of_type("SQS::QueuePolicy")
        return {name: resolver.resolve(each["PolicyDocument"]) for name, each in policies.items()}

    @cached_property
    def arns(self) -> Sequence[str]:
        """The ARNs of everything that the stacks have, and of what runs in them."""
        return [*self._made, *self._of_cluster, *self._of_machines, *self._written]

    @cached_property
    def rules(self) -> Sequence[str]:
        """The ARNs of the rules of EventBridge, also of those that `relaunch apply` writes for uploads."""
        return [each for each in self.arns if ":rule/" in each]

    @property
    def cluster(self) -> str:
        """The ARN of the cluster."""
        return self.arn("ecs", f"cluster/{self.name}")

    @property
    def _of_cluster(self) -> Iterator[str]:
        yield self.cluster
        yield self.arn("ecs", f"task/{self.name}/{self._id('task', 32)}")
        yield self.arn("ecs", f"container-instance/{self.name}/{self._id('instance', 32)}")
        yield self.arn("ecs", f"capacity-provider/{self.name}-g5-xlarge-spot")
        for family in (f"{self.family_prefix}resnet", f"{self.family_prefix}resnet--{self._id('derived', 16)}"):
            yield self.arn("ecs", f"task-definition/{family}:1")
            # Of the revision that is to be registered the number is not known.
            yield self.arn("ecs", f"task-definition/{family}:*")
        group = f"/relaunch/{self.name}"
        yield self.arn("logs", f"log-group:{group}")
        yield self.arn("logs", f"log-group:{group}:log-stream:resnet/main/{self._id('task', 32)}")
        yield self.arn("ecr", f"repository/{self.name.lower()}/trainer")

    @property
    def _of_machines(self) -> Iterator[str]:
        for kind, prefix in (("instance", "i"), ("volume", "vol"), ("fleet", "fleet"), ("security-group", "sg")):
            yield self.arn("ec2", f"{kind}/{prefix}-{self._id(kind, 17)}")
        yield self.arn("ec2", f"subnet/{self._subnet}")
        yield self.arn("ec2", f"capacity-reservation/{self._reservation}")
        for kind in ("gpu", "neuron"):
            yield self.arn("ec2", f"launch-template/lt-{self._id(kind, 17)}")

    @property
    def _written(self) -> Iterator[str]:
        for number in range(2):
            yield self.arn("events", f"rule/relaunch-{self.name}-{self._id(f'uploads {number}', 12)}")
        for end in _FILES:
            yield self.arn("cloudformation", f"stack/{self.name}{end}/{self._id(f'stack{end}', 32)}")
        yield self.arn("ssm", f"parameter/relaunch/{self.name}/notices")
        yield self.arn("eks", f"cluster/{self.name}")
        yield self.arn("sns", f"{self.name}-training")
        yield self._key
        yield from map(self._secret, ("github", "github-statuses", "ack"))

    @property
    def _made(self) -> Iterator[str]:
        """What the templates make, by its ARN."""
        for template, resolver in self._resolved.values():
            for logical_id, resource in template.resources.items():
                if not resolver.holds(resource.get("Condition")):
                    continue
                arn = str(resolver.resolve({"Fn::GetAtt": [logical_id, "Arn"]}))
                if resource["Type"] == "AWS::SecretsManager::Secret":
                    arn = str(resolver.resolve({"Ref": logical_id}))
                if not arn.startswith("arn:"):
                    continue
                yield from self._with_parts(arn, resource["Type"])

    def _with_parts(self, arn: str, kind: str) -> Iterator[str]:
        yield arn.removesuffix(":*")
        if kind == "AWS::DynamoDB::Table":
            yield from (f"{arn}/index/{index}" for index in ("due", "slots", "listing"))
        elif kind == "AWS::Scheduler::ScheduleGroup":
            yield arn.replace(":schedule-group/", ":schedule/") + "/abcdefghijkl"
        elif kind == "AWS::S3::Bucket":
            yield from (f"{arn}/resnet/{name}" for name in ("weights.bin", "manifest.json"))
        elif kind == "AWS::Logs::LogGroup":
            yield arn.replace(":*", ":log-stream:2026/11/03/1")

    @cached_property
    def _resolved(self) -> Mapping[str, tuple[TemplateDocument, Resolver]]:
        documents = {end: read_template(file) for end, file in _FILES.items()}
        return {end: (each, Resolver(each, **self._values(end, each))) for end, each in documents.items()}

    def _values(self, end: str, template: TemplateDocument) -> dict[str, str]:
        defaults = {name: str(each["Default"]) for name, each in template.parameters.items() if "Default" in each}
        named = {**defaults, **self._parameters, **self.separate}
        if end == "-training-resnet":
            task_roles = self.separate.get("TaskRolePath", "relaunch/")
            named |= {
                "RolePath": f"/{task_roles}trainings/{self.name}/",
                "CheckpointBucket": self._bucket("NewCheckpointBucket"),
                "DataBucket": self._bucket("NewDataBucket"),
            }
        given = {name: value for name, value in named.items() if name in template.parameters}
        names = {
            logical_id: self._name(f"{self.name}{end}", logical_id, resource, template, given)
            for logical_id, resource in template.resources.items()
        }
        values = physical_values(template, ACCOUNT, self.region, names)
        for logical_id, resource in template.resources.items():
            if (resource_type := _OTHER_ARNS.get(resource["Type"])) is not None:
                service, kind = resource_type
                values[f"{logical_id}.Arn"] = self.arn(
                    service, f"{kind}{names[logical_id]}", region=_region_of(service)
                )
            for event, content in resource.get("Properties", {}).get("Events", {}).items():
                if content["Type"] == "Schedule":
                    # SAM makes a rule of it.
                    rule = self._name(self.name, f"{logical_id}{event}", {"Type": ""}, template, given)
                    values[f"{logical_id}{event}.Arn"] = self.arn("events", f"rule/{rule}")
        return {**values, "AWS::StackName": f"{self.name}{end}", **given}

    def _name(
        self,
        stack: str,
        logical_id: str,
        resource: Mapping[str, Any],
        template: TemplateDocument,
        given: Mapping[str, str],
    ) -> str:
        kind = resource["Type"]
        named = {
            "AWS::ECS::Cluster": self.name,
            "AWS::ECR::Repository": f"{self.name.lower()}/trainer",
            # Of functions CloudFormation names it.
            "AWS::Logs::LogGroup": f"/relaunch/{self.name}" if stack.endswith("-training") else "",
        }
        if named.get(kind):
            return named[kind]
        if kind == "AWS::SecretsManager::Secret":
            stack = ""
        name = "-".join(filter(None, (stack, logical_id, self._id(f"{stack}{logical_id}", 12).upper())))
        if kind == "AWS::S3::Bucket":
            return name.lower()
        path = str(Resolver(template, **given).resolve(resource.get("Properties", {}).get("Path", "")))
        return f"{path.lstrip('/')}{name}"

    @property
    def _parameters(self) -> Mapping[str, str]:
        """Everything that a deployment can have, as `relaunch deploy` names it."""
        templates = ",".join(f"{kind}=lt-{self._id(kind, 17)}:1" for kind in ("gpu", "neuron"))
        return {
            "ApplicationStack": self.name,
            "ClusterName": self.name,
            "RepositoryName": f"{self.name.lower()}/trainer",
            "ImageRepositories": self.arn("ecr", f"repository/{self.name.lower()}/trainer"),
            "TrainingName": "resnet",
            "Zone1": f"{self.region}a",
            "GitHubRepository": f"acme/{self.name}",
            "GitHubOidcProviderArn": self.arn("iam", _GITHUB, region=""),
            "CheckpointKeyArns": self._key,
            "CheckpointBuckets": self._bucket("NewCheckpointBucket"),
            "MachineSubnets": f"{self.region}a={self._subnet}",
            "MachineLaunchTemplates": templates,
            "MachineInstanceRoleArn": self._machine_role,
            "MachineDiskKeyArn": self._key,
            "CapacityReservations": self._reservation,
            "GithubTokenSecretArn": self._secret("github"),
            "GithubStatusTokenSecretArn": self._secret("github-statuses"),
            "EksClusterName": self.name,
            "AckKubeconfigSecretArn": self._secret("ack"),
            "AcsClusterId": "c0123456789abcdef",
            "Uploads": "on",
            "SnsTopicArns": self.arn("sns", f"{self.name}-features"),
            "Notices": "on",
            "NoticeTopicArns": self.arn("sns", f"{self.name}-training"),
            "Webhook": "on",
        }

    @property
    def _machine_role(self) -> str:
        path = self.separate.get("RolePath", "relaunch/")
        suffix = self._id(f"{self.name}-machinesInstanceRole", 12).upper()
        return self.arn("iam", f"role/{path}{self.name}-machines-InstanceRole-{suffix}", region="")

    def _bucket(self, logical_id: str) -> str:
        stack = f"{self.name}-training"
        return f"{stack}-{logical_id}-{self._id(f'{stack}{logical_id}', 12)}".lower()

    def _secret(self, what: str) -> str:
        return self.arn("secretsmanager", f"secret:{self.name}-{what}-AbCdEf")

    @property
    def _key(self) -> str:
        return self.arn("kms", f"key/{self._id('key', 32)}")

    @property
    def _subnet(self) -> str:
        return f"subnet-{self._id('subnet', 17)}"

    @property
    def _reservation(self) -> str:
        return f"cr-{self._id('reservation', 17)}"

    def _id(self, of: str, length: int) -> str:
        """Return what tells a thing of this stack from those of others, as an ID or the end of a name."""
        return hashlib.sha256(f"{self.name}/{of}".encode()).hexdigest()[:length]


# Those that `physical_values` gives no ARN, by service and what is before the name.
_OTHER_ARNS: Mapping[str, tuple[str, str]] = {
    "AWS::Events::Rule": ("events", "rule/"),
    "AWS::IAM::InstanceProfile": ("iam", "instance-profile/"),
    "AWS::Scheduler::ScheduleGroup": ("scheduler", "schedule-group/"),
    "AWS::Serverless::Function": ("lambda", "function:"),
}


def _region_of(service: str) -> str | None:
    return "" if service == "iam" else None


def strings_of(document: PolicyDocument) -> Iterator[str]:
    """Yield the resources that a policy names, and the values of its conditions."""
    for statement in listed(document["Statement"]):
        yield from listed(statement.get("Resource", ()))
        for keys in statement.get("Condition", {}).values():
            for values in keys.values():
                yield from map(str, listed(values))
