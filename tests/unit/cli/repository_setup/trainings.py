"""A training and the stack that it is in, as the tests of `relaunch init` have them."""

from relaunch_cli.repository_setup.training_stack import TrainingStack

ROLE = "arn:aws:iam::111122223333:role/relaunch"
STACK = TrainingStack(
    region="eu-central-1",
    repository_name="relaunch/trainer",
    repository_uri="111122223333.dkr.ecr.eu-central-1.amazonaws.com/relaunch/trainer",
    log_group="/relaunch/relaunch",
    checkpoint_bucket="acme-checkpoints",
    data_bucket="acme-data",
    task_role_arn=f"{ROLE}/task",
    execution_role_arn=f"{ROLE}/execution",
    families=("relaunch-*",),
    job_api_url="https://example.lambda-url.eu-central-1.on.aws/",
    webhook_url="https://webhook.lambda-url.eu-central-1.on.aws/",
    submit_role_arn=f"{ROLE}/submit",
    github_repository="acme/vision",
    github_ref="refs/heads/main",
    image_repository="relaunch/trainer",
    plan_role_arn=f"{ROLE}/plan",
    plan_api_url="https://plan.lambda-url.eu-central-1.on.aws/",
)
