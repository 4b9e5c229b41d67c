"""Links to the AWS console."""

import pytest

from relaunch_cli.console_links import TaskConsole

CONSOLE = TaskConsole.of("arn:aws:ecs:eu-west-1:111122223333:task/relaunch/0af")


def test_a_task_is_found_in_its_cluster_and_region():
    assert CONSOLE.task_link() == (
        "https://eu-west-1.console.aws.amazon.com/ecs/v2/clusters/relaunch/tasks/0af/configuration?region=eu-west-1"
    )


def test_an_instance_is_found_by_its_id():
    assert CONSOLE.instance_link("i-0a1") == (
        "https://eu-west-1.console.aws.amazon.com/ec2/home?region=eu-west-1#InstanceDetails:instanceId=i-0a1"
    )


@pytest.mark.parametrize("region", [None, "us-east-1"])
def test_a_log_stream_is_quoted_twice_as_the_console_does(region):
    shown = region or "eu-west-1"

    assert CONSOLE.log_link("/ecs/trainer", "train/main/0af", region) == (
        f"https://{shown}.console.aws.amazon.com/cloudwatch/home?region={shown}"
        "#logsV2:log-groups/log-group/$252Fecs$252Ftrainer/log-events/train$252Fmain$252F0af"
    )


@pytest.mark.parametrize(
    ("partition", "domain"),
    [
        ("aws", "console.aws.amazon.com"),
        ("aws-cn", "console.amazonaws.cn"),
        ("aws-us-gov", "console.amazonaws-us-gov.com"),
    ],
)
def test_each_partition_has_a_console_of_its_own(partition, domain):
    link = TaskConsole.of(f"arn:{partition}:ecs:r-1:111122223333:task/c/t").task_link()

    assert link.startswith(f"https://r-1.{domain}/ecs/v2/clusters/c/tasks/t/")
