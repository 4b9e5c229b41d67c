"""The stacks of a deployment, by their outputs and parameters, as `relaunch init` reads them."""

import json

import boto3

from fakes.aws import REGION

ROLE = "arn:aws:iam::123456789012:role/relaunch"
TRAINING = {
    "RepositoryName": "relaunch/trainer",
    "RepositoryUri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/relaunch/trainer",
    "LogGroupName": "/relaunch/relaunch",
    "CheckpointBucketName": "acme-checkpoints",
    "DataBucketName": "acme-data",
    "TaskRoleArn": f"{ROLE}/task",
    "ExecutionRoleArn": f"{ROLE}/execution",
    "SubmitRoleArn": f"{ROLE}/submit",
    "PlanRoleArn": f"{ROLE}/plan",
}
APPLICATION = {
    "TaskDefinitionFamilies": "*",
    "JobApiUrl": "https://api.example/",
    "PlanApiUrl": "https://plan.example/",
    "WebhookUrl": "https://hook.example/",
    "UploadsQueueArn": "arn:aws:sqs:us-east-1:123456789012:uploads",
}
PARAMETERS = {"GitHubRepository": "acme/vision", "GitHubRef": "refs/heads/main"}


def create_stack(name: str, outputs: dict[str, str], **parameters: str) -> None:
    """Create a stack with these outputs and parameters."""
    template = {
        "Parameters": {each: {"Type": "String"} for each in parameters},
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {each: {"Value": value} for each, value in outputs.items()},
    }
    boto3.client("cloudformation", REGION).create_stack(
        StackName=name,
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": each, "ParameterValue": value} for each, value in parameters.items()],
    )
