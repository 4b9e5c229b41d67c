"""The names and ARNs that CloudFormation gives to the resources of a template."""

from collections.abc import Mapping

from relaunch_local.templates.document import TemplateDocument
from relaunch_local.templates.resolver import PSEUDO

_ARNS: Mapping[str, str] = {
    "AWS::DynamoDB::Table": "arn:aws:dynamodb:{region}:{account}:table/{name}",
    "AWS::IAM::Role": "arn:aws:iam::{account}:role/{name}",
    "AWS::Logs::LogGroup": "arn:aws:logs:{region}:{account}:log-group:{name}:*",
    "AWS::SQS::Queue": "arn:aws:sqs:{region}:{account}:{name}",
    "AWS::SecretsManager::Secret": "arn:aws:secretsmanager:{region}:{account}:secret:{name}-AbCdEf",
    "AWS::ECR::Repository": "arn:aws:ecr:{region}:{account}:repository/{name}",
    "AWS::S3::Bucket": "arn:aws:s3:::{name}",
    "AWS::ECS::Cluster": "arn:aws:ecs:{region}:{account}:cluster/{name}",
}


def physical_values(
    template: TemplateDocument, account: str, region: str, names: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return what Ref and GetAtt answer for the resources, by `ID`, `ID.Arn` and `ID.Id`, and the pseudo parameters.

    A resource is named by its logical ID unless `names` has another name for it.
    """
    values = {**PSEUDO, "AWS::AccountId": account, "AWS::Region": region}
    for logical_id, resource in template.resources.items():
        kind = resource["Type"]
        name = (names or {}).get(logical_id, logical_id)
        arn = _ARNS[kind].format(region=region, account=account, name=name) if kind in _ARNS else f"{logical_id}.Arn"
        if kind == "AWS::SQS::Queue":
            reference = f"https://sqs.{region}.amazonaws.com/{account}/{name}"
        else:
            reference = arn if kind == "AWS::SecretsManager::Secret" else name
        values |= {logical_id: reference, f"{logical_id}.Arn": arn, f"{logical_id}.Id": reference}
    return values
