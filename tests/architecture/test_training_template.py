"""What trainings need beside the application, as infrastructure/training.yaml makes it, and what that lets whom do."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from architecture.conftest import Template, as_list
from architecture.role_policies import PSEUDO, Resolver, RolePolicies
from architecture.written_template import written_template
from relaunch.usecases import keep_images

ZONES = {"Zone1": "us-east-1a", "Zone2": "us-east-1b", "Zone3": "us-east-1c"}
PROVIDER = "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com"
GITHUB = {"GitHubRepository": "acme/vision", "GitHubOidcProviderArn": PROVIDER}
REPOSITORY = "arn:aws:ecr:us-east-1:111122223333:repository/relaunch/trainer"
# Service Authorization Reference: these actions name no resource.
ACTIONS_WITHOUT_RESOURCE = {
    "ecr:GetAuthorizationToken",
    "ecr-public:GetAuthorizationToken",
    "sts:GetServiceBearerToken",
    "ecs:DescribeTaskDefinition",
    "ecs:ListTaskDefinitions",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeSpotPriceHistory",
    "ec2:GetSpotPlacementScores",
    "events:ListRules",
    "scheduler:ListSchedules",
    "servicequotas:GetServiceQuota",
}


@pytest.fixture(scope="module")
def training() -> Template:
    return written_template("infrastructure/training.yaml")


def made(training: Template, **parameters: str) -> dict[str, dict[str, Any]]:
    """The properties of the resources that these parameters make, by their logical ids."""
    resolver = Resolver(training, **{**ZONES, **parameters})
    return {
        name: resolver.resolve(each.get("Properties", {}))
        for name, each in training.resources.items()
        if resolver.holds(each.get("Condition"))
    }


def outputs(training: Template, **parameters: str) -> dict[str, str]:
    resolver = Resolver(training, **{**ZONES, **parameters})
    return {
        name: resolver.resolve(each["Value"])
        for name, each in training.outputs.items()
        if resolver.holds(each.get("Condition"))
    }


def statements(resources: dict[str, dict[str, Any]], role: str) -> list[dict[str, Any]]:
    return [each for policy in resources[role]["Policies"] for each in policy["PolicyDocument"]["Statement"]]


@pytest.mark.parametrize("count", range(1, 7))
def test_each_zone_has_a_public_subnet_that_no_other_overlaps(training: Template, count: int) -> None:
    zones = [f"us-east-1{letter}" for letter in "abcdef"[:count]]
    named = {f"Zone{place}": zones[place - 1] if place <= count else "" for place in range(1, 7)}
    resources = made(training, **named)

    subnets = [each for name, each in resources.items() if re.fullmatch(r"Subnet\d", name)]
    assert [each["AvailabilityZone"] for each in subnets] == zones
    assert all(each["MapPublicIpOnLaunch"] for each in subnets)
    assert [each["CidrBlock"] for each in subnets] == [f"10.71.{32 * place}.0/19" for place in range(count)]
    routed = {each["SubnetId"] for name, each in resources.items() if name.endswith("Routes")}
    assert routed == {name for name in resources if re.fullmatch(r"Subnet\d", name)}
    assert outputs(training, **named)["MachineSubnets"] == ",".join(
        f"{zone}=Subnet{place}" for place, zone in enumerate(zones, 1)
    )


def test_the_network_has_a_way_out_and_none_in(training: Template) -> None:
    resources = made(training)

    assert resources["InternetRoute"]["DestinationCidrBlock"] == "0.0.0.0/0"
    assert resources["S3Endpoint"]["VpcEndpointType"] == "Gateway"
    kinds = {each["Type"] for each in training.resources.values()}
    # Each of these costs something while nothing runs, or lets something in.
    assert not kinds & {"AWS::EC2::NatGateway", "AWS::EC2::EIP", "AWS::EC2::SecurityGroup", "AWS::KMS::Key"}
    assert {each["VpcEndpointType"] for each in training.of_type("EC2::VPCEndpoint").values()} == {"Gateway"}


def test_what_exists_is_not_made(training: Template) -> None:
    existing = {
        "VpcId": "vpc-0abc",
        "ExistingCluster": "true",
        "ExistingRepository": "true",
        "ExistingLogGroup": "true",
        "CheckpointBucket": "acme-checkpoints",
        "DataBucket": "acme-data",
    }
    resources = made(training, **existing)

    assert set(resources) == {"TaskRole", "ExecutionRole", "ReaderRole", "OperatorRole"}
    told = outputs(training, **existing)
    assert told["VpcId"] == "vpc-0abc"
    assert told["LogGroupName"] == "/relaunch/relaunch"
    assert told["CheckpointBucketName"] == "acme-checkpoints"
    assert told["DataBucketName"] == "acme-data"
    assert "MachineSubnets" not in told
    policies = RolePolicies(training, "TaskRole", **existing)
    assert policies.allows("s3:PutObject", "arn:aws:s3:::acme-checkpoints/resnet/step/manifest.json")


@pytest.mark.parametrize(
    ("parameters", "group"),
    [
        ({"ClusterName": "ml"}, "/relaunch/ml"),
        ({"ClusterName": "ml", "TrainingLogGroup": "/relaunch/ml/vision"}, "/relaunch/ml/vision"),
    ],
)
def test_trainings_write_into_the_group_that_is_made_and_people_read_it(
    training: Template, parameters: dict[str, str], group: str
) -> None:
    resources = made(training, **parameters)

    assert resources["LogGroup"]["LogGroupName"] == outputs(training, **parameters)["LogGroupName"] == group
    stream = f"arn:aws:logs:us-east-1:111122223333:log-group:{group}:log-stream:train/main/1"
    beside = stream.replace(group, "/relaunch/other")
    for role, action in (
        ("ExecutionRole", "logs:CreateLogStream"),
        ("ExecutionRole", "logs:PutLogEvents"),
        ("ReaderRole", "logs:GetLogEvents"),
        ("OperatorRole", "logs:GetLogEvents"),
    ):
        policies = RolePolicies(training, role, **parameters)
        assert policies.allows(action, stream), role
        assert not policies.allows(action, beside), role


def test_the_stack_refuses_a_network_without_zones_and_github_without_a_provider(training: Template) -> None:
    # Rules take other functions than the rest of a template: no Select, Join or If (CloudFormation, "Rules").
    assert set(training.assertions) == {"ANetworkHasZones", "GitHubHasAProvider"}
    used = set(re.findall(r"Fn::\w+", json.dumps(training.assertions)))
    assert used <= {"Fn::Not", "Fn::Equals"}


def test_no_rule_deletes_an_image_that_a_job_can_hold(training: Template) -> None:
    repository = made(training)["Repository"]

    assert repository["ImageScanningConfiguration"] == {"ScanOnPush": True}
    assert repository["ImageTagMutability"] == "IMMUTABLE_WITH_EXCLUSION"
    (movable,) = repository["ImageTagMutabilityExclusionFilters"]
    assert movable["ImageTagMutabilityExclusionFilterValue"] == "*latest"
    (rule,) = json.loads(repository["LifecyclePolicy"]["LifecyclePolicyText"])["rules"]
    # What was pushed with a tag keeps it, for tags cannot be moved.
    assert rule["selection"] == {
        "tagStatus": "untagged",
        "countType": "sinceImagePushed",
        "countUnit": "days",
        "countNumber": 14,
    }


def test_images_that_nobody_pulls_are_archived_before_they_are_deleted_and_the_newest_never(training: Template) -> None:
    policy = made(training, UnusedImageDays="90")["Repository"]["LifecyclePolicy"]["LifecyclePolicyText"]
    untagged, newest, unused, archived = json.loads(policy)["rules"]

    assert untagged["selection"]["tagStatus"] == "untagged"
    # An image with the tags of a rule is safe from all that follow.
    assert newest["selection"]["tagPatternList"] == ["*latest"]
    # ECR takes this count with `transition` alone: nothing is deleted that was in use until then.
    assert unused["selection"] | {"tagPatternList": ["*"], "countNumber": 90} == unused["selection"]
    assert unused["selection"]["countType"] == "sinceImagePulled"
    assert unused["action"] == {"type": "transition", "targetStorageClass": "archive"}
    assert archived["selection"]["storageClass"] == "archive"
    assert archived["selection"]["countNumber"] == 90


@pytest.mark.parametrize(("days", "is_valid"), [("0", True), ("60", True), ("365", True), ("59", False), ("1", False)])
def test_images_are_in_use_for_longer_than_reconcile_lets_a_job_hold_them_unread(
    training: Template, days: str, is_valid: bool
) -> None:
    pattern = training.parameters["UnusedImageDays"]["AllowedPattern"]

    assert bool(re.fullmatch(pattern, days)) is is_valid
    assert timedelta(days=60) == keep_images.HELD_FOR * 2


@pytest.mark.parametrize("bucket", ["NewCheckpointBucket", "NewDataBucket"])
def test_buckets_are_versioned_encrypted_and_closed(training: Template, bucket: str) -> None:
    resources = made(training)
    properties = resources[bucket]

    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    assert properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    assert properties["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    rules = {rule["Id"]: rule for rule in properties["LifecycleConfiguration"]["Rules"]}
    assert rules["old-versions"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 3}
    assert rules["unfinished-uploads"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    # No rule ends what is current.
    assert not any("Expiration" in rule or "ExpirationInDays" in rule for rule in rules.values())
    (denied,) = resources[f"{bucket}Policy"]["PolicyDocument"]["Statement"]
    assert (denied["Effect"], denied["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_uploads_of_the_data_bucket_are_events(training: Template) -> None:
    notification = made(training)["NewDataBucket"]["NotificationConfiguration"]

    assert notification == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}


def test_what_holds_somebodys_work_outlives_the_stack(training: Template) -> None:
    kept = {name for name, each in training.resources.items() if each.get("DeletionPolicy") == "Retain"}

    assert kept == {
        "LogGroup",
        "Repository",
        "NewCheckpointBucket",
        "NewCheckpointBucketPolicy",
        "NewDataBucket",
        "NewDataBucketPolicy",
    }
    for name in kept:
        assert training.resources[name]["UpdateReplacePolicy"] == "Retain"


def test_roles_are_under_the_path_that_the_application_may_pass(training: Template) -> None:
    for name, role in made(training, **GITHUB).items():
        if name.endswith("Role"):
            assert role["Path"] == "/relaunch/"


@pytest.mark.parametrize("role", ["TaskRole", "ExecutionRole"])
def test_roles_of_tasks_are_for_tasks_of_this_account_alone(training: Template, role: str) -> None:
    (trust,) = made(training)[role]["AssumeRolePolicyDocument"]["Statement"]

    assert trust["Principal"] == {"Service": "ecs-tasks.amazonaws.com"}
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": PSEUDO["AWS::AccountId"]}
    assert trust["Condition"]["ArnLike"] == {"aws:SourceArn": "arn:aws:ecs:us-east-1:111122223333:*"}


def test_a_training_reads_data_and_writes_checkpoints(training: Template) -> None:
    policies = RolePolicies(training, "TaskRole", **ZONES)
    checkpoints, data = "arn:aws:s3:::NewCheckpointBucket", "arn:aws:s3:::NewDataBucket"

    for bucket in (checkpoints, data):
        assert policies.allows("s3:ListBucket", bucket)
        assert policies.allows("s3:GetObject", f"{bucket}/a")
    for action in ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"):
        assert policies.allows(action, f"{checkpoints}/a")
        assert not policies.allows(action, f"{data}/a")
    for action in ("s3:DeleteObjectVersion", "s3:PutBucketPolicy", "s3:PutLifecycleConfiguration"):
        assert not policies.allows(action, f"{checkpoints}/a")
        assert not policies.allows(action, checkpoints)


def test_all_resources_are_allowed_only_where_aws_knows_none(training: Template) -> None:
    resources = made(training, **GITHUB)
    for role in (name for name in resources if name.endswith("Role")):
        for statement in statements(resources, role):
            if "*" in as_list(statement["Resource"]):
                assert set(as_list(statement["Action"])) <= ACTIONS_WITHOUT_RESOURCE, role


def test_a_reader_changes_nothing(training: Template) -> None:
    for statement in statements(made(training), "ReaderRole"):
        for action in as_list(statement["Action"]):
            assert re.match(r"\w+:(Get|List|Describe|Query)", action), action


def test_an_operator_reads_what_a_reader_does_and_passes_no_role_but_those_of_trainings(training: Template) -> None:
    resources = made(training)
    operator = statements(resources, "OperatorRole")

    assert all(each in operator for each in statements(resources, "ReaderRole"))
    of_schedules, passing = [each for each in operator if "iam:PassRole" in as_list(each["Action"])]
    of_single_trainings = "arn:aws:iam::111122223333:role/*trainings/relaunch/*"
    assert passing["Resource"] == ["TaskRole.Arn", "ExecutionRole.Arn", of_single_trainings]
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
    assert of_schedules["Resource"] == "arn:aws:iam::111122223333:role/relaunch-SchedulesRole-*"
    assert of_schedules["Condition"] == {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}}


def test_without_a_repository_nobody_comes_from_github(training: Template) -> None:
    assert not {"SubmitRole", "PlanRole"} & set(made(training))
    assert not {"SubmitRoleArn", "PlanRoleArn"} & set(outputs(training))


def trust_of(training: Template, role: str = "SubmitRole", **parameters: str) -> dict[str, Any]:
    (trust,) = made(training, **GITHUB, **parameters)[role]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Federated": PROVIDER}
    assert set(trust["Condition"]) == {"StringEquals"}
    return {key.rpartition(":")[2]: value for key, value in trust["Condition"]["StringEquals"].items()}


def test_one_branch_of_one_repository_is_let_in_by_both_forms_of_its_subject(training: Template) -> None:
    assert trust_of(training) == {"aud": "sts.amazonaws.com", "sub": ["repo:acme/vision:ref:refs/heads/main"]}
    assert trust_of(training, GitHubOwnerId="11", GitHubRepositoryId="22") == {
        "aud": "sts.amazonaws.com",
        "sub": ["repo:acme/vision:ref:refs/heads/main", "repo:acme@11/vision@22:ref:refs/heads/main"],
        "repository_id": "22",
    }


def test_an_environment_is_let_in_instead_of_a_branch(training: Template) -> None:
    trust = trust_of(training, GitHubEnvironment="training", GitHubOwnerId="11", GitHubRepositoryId="22")

    assert trust["sub"] == ["repo:acme/vision:environment:training", "repo:acme@11/vision@22:environment:training"]


def test_pull_requests_are_let_in_only_to_plan_by_both_forms_of_their_subject(training: Template) -> None:
    assert trust_of(training, "PlanRole") == {"aud": "sts.amazonaws.com", "sub": ["repo:acme/vision:pull_request"]}
    numbers = {"GitHubOwnerId": "11", "GitHubRepositoryId": "22"}
    assert trust_of(training, "PlanRole", **numbers, GitHubEnvironment="training") == {
        "aud": "sts.amazonaws.com",
        "sub": ["repo:acme/vision:pull_request", "repo:acme@11/vision@22:pull_request"],
        "repository_id": "22",
    }


def test_a_pull_request_can_do_nothing_but_plan(training: Template) -> None:
    policies = RolePolicies(training, "PlanRole", **GITHUB, **ZONES)
    function = "arn:aws:lambda:us-east-1:111122223333:function:relaunch"
    by_url = {"lambda__FunctionUrlAuthType": "AWS_IAM", "lambda__InvokedViaFunctionUrl": "true"}

    (role,) = [each for name, each in made(training, **GITHUB).items() if name == "PlanRole"]
    actions = {
        action
        for policy in role["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        for action in as_list(statement["Action"])
    }
    assert actions == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}
    for action in actions:
        assert policies.allows(action, f"{function}-PlanApiFunction-Z1Y2", **by_url)
        assert not policies.allows(action, f"{function}-PlanApiFunction-Z1Y2")
        assert not policies.allows(action, f"{function}-JobApiFunction-Z1Y2", **by_url)
        assert not policies.allows(action, f"{function}-other-PlanApiFunction-Z1Y2", **by_url)


@pytest.mark.parametrize("ref", ["refs/heads/*", "*", "main", "refs/pull/1/merge", "refs/heads/main:x"])
def test_a_ref_is_no_pattern(training: Template, ref: str) -> None:
    assert not re.fullmatch(training.parameters["GitHubRef"]["AllowedPattern"], ref)


def test_a_workflow_pushes_images_and_submits_and_can_do_nothing_else(training: Template) -> None:
    policies = RolePolicies(training, "SubmitRole", **GITHUB, **ZONES)
    function = "arn:aws:lambda:us-east-1:111122223333:function:relaunch"

    by_url = {"lambda__FunctionUrlAuthType": "AWS_IAM", "lambda__InvokedViaFunctionUrl": "true"}
    for action in ("lambda:InvokeFunctionUrl", "lambda:InvokeFunction"):
        assert policies.allows(action, f"{function}-JobApiFunction-Z1Y2", **by_url)
        # Who invokes it directly can name any caller.
        assert not policies.allows(action, f"{function}-JobApiFunction-Z1Y2")
        assert not policies.allows(action, f"{function}-ReconcileFunction-Z1Y2", **by_url)
        assert not policies.allows(action, f"{function}-other-JobApiFunction-Z1Y2", **by_url)
    assert policies.allows("ecr:PutImage", REPOSITORY)
    assert not policies.allows("ecr:PutImage", f"{REPOSITORY}-other")
    for action in ("ecr:BatchDeleteImage", "ecr:SetRepositoryPolicy", "ecr:PutLifecyclePolicy"):
        assert not policies.allows(action, REPOSITORY)
