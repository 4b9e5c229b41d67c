import pytest

from relaunch_local.iam.calls import CalledAccount, CallPermissions, operations
from relaunch_local.iam.conditions import PolicyError
from relaunch_local.iam.permission import Permission
from relaunch_local.iam.reference import actions_like, check_permission, find_action, is_without_key, policy_errors

TABLE = "arn:aws:dynamodb:us-east-1:111122223333:table/jobs"


def statement(action: object, **others: object) -> dict[str, object]:
    return {"Statement": [{"Effect": "Allow", "Action": action, "Resource": "*", **others}]}


def test_an_index_is_a_resource_of_its_own() -> None:
    query = find_action("dynamodb:Query")

    assert query.type_of(TABLE) == "table"
    assert query.type_of(f"{TABLE}/index/due") == "index"
    assert query.type_of(f"{TABLE}/stream/1") is None


@pytest.mark.parametrize(
    ("permission", "message"),
    [
        (Permission("k", "dynamodb:Querry", TABLE), "no action dynamodb:Querry"),
        (Permission("k", "dynamodb:PutItem", f"{TABLE}/index/due"), "no resource like"),
        (Permission("k", "pricing:GetProducts", TABLE), "has no resource"),
        (Permission("k", "sqs:SendMessage", "*"), "no resource like"),
        (Permission("k", "ecs:ListTaskDefinitions", "*", {"ecs:cluster": "c"}), "ecs:cluster"),
    ],
)
def test_what_aws_does_not_have_is_no_permission(permission: Permission, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        check_permission(permission)


def test_what_it_has_is_one() -> None:
    check_permission(Permission("k", "dynamodb:Query", TABLE, {"dynamodb:LeadingKeys": ("a",)}))
    check_permission(Permission("k", "ec2:DescribeInstances", "*"))
    check_permission(Permission("k", "s3:GetObject", "arn:aws:s3:::acme/a/b:c"))


def test_a_key_that_an_action_does_not_have_has_no_value() -> None:
    image, instance = (f"arn:aws:ec2:us-east-1:1:{each}" for each in ("image/ami-1", "instance/*"))

    assert is_without_key("ec2:RunInstances", image, "ec2:InstanceProfile")
    assert not is_without_key("ec2:RunInstances", instance, "ec2:InstanceProfile")
    assert not is_without_key("ec2:RunInstances", instance, "aws:RequestTag/team")
    assert not is_without_key("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:q", "aws:PrincipalArn")


def test_dependent_actions_are_known() -> None:
    assert find_action("ec2:RunInstances").dependent_actions >= {"iam:PassRole", "ec2:CreateTags", "ssm:GetParameters"}


def test_actions_are_found_by_wildcards() -> None:
    assert set(actions_like("sqs:*MessageVisibility")) == {"sqs:ChangeMessageVisibility"}


@pytest.mark.parametrize(
    ("document", "error"),
    [
        (statement("sqs:Send"), "no action sqs:Send"),
        (statement("sqs:SendMessage", Condition={"StringIs": {"aws:PrincipalArn": "a"}}), "StringIs"),
        (statement("sqs:SendMessage", Condition={"StringEquals": {"dynamodb:LeadingKeys": "a"}}), "LeadingKeys"),
    ],
)
def test_errors_of_policies_are_found(document: dict[str, object], error: str) -> None:
    (found,) = policy_errors(document)
    assert error in found


def test_a_policy_without_errors_has_none() -> None:
    assert list(policy_errors(statement("*"))) == []
    assert list(policy_errors(statement(["sqs:SendMessage", "ec2:Describe*"]))) == []


def test_a_call_without_a_rule_is_an_error() -> None:
    calls = CallPermissions(CalledAccount("111122223333", "us-east-1"))

    with pytest.raises(PolicyError, match="dynamodb:Scan"):
        calls.required("k", "dynamodb", "Scan", {"TableName": "jobs"})
    assert ("dynamodb", "Query") in operations()


def test_a_transaction_requires_the_permissions_of_its_parts() -> None:
    calls = CallPermissions(CalledAccount("111122223333", "us-east-1"))
    key = {"pk": {"S": "JOB#1"}, "sk": {"S": "JOB"}}
    parts = [{"Put": {"TableName": "jobs", "Item": key}}, {"Delete": {"TableName": "jobs", "Key": key}}]

    required = calls.required("k", "dynamodb", "TransactWriteItems", {"TransactItems": parts})

    assert [each.action for each in required] == ["dynamodb:PutItem", "dynamodb:DeleteItem"]
    assert {each.resource for each in required} == {TABLE}
    assert {each.context["dynamodb:LeadingKeys"] for each in required} == {("JOB#1",)}


def test_an_object_in_an_encrypted_bucket_requires_its_key() -> None:
    key = "arn:aws:kms:us-east-1:111122223333:key/1"
    calls = CallPermissions(CalledAccount("111122223333", "us-east-1", {"acme": key}))

    read, decrypted = calls.required("k", "s3", "GetObject", {"Bucket": "acme", "Key": "a/b"})

    assert (read.action, read.resource) == ("s3:GetObject", "arn:aws:s3:::acme/a/b")
    assert (decrypted.action, decrypted.resource) == ("kms:Decrypt", key)
    assert decrypted.context == {"kms:ViaService": "s3.us-east-1.amazonaws.com"}
