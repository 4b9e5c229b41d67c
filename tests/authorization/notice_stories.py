"""What send_notices does with events of jobs, by its entry point and with its role's permissions alone."""

import json
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from authorization.stories import Stories
from fakes.functions import FakeContext, make_batch
from fakes.github_api import TOKEN, Answer, GithubApi, serve_github
from fakes.role_world import ACCOUNT, REGION, SUFFIX
from fakes.webhook import load_event
from relaunch.entrypoints.consumers import consumer
from relaunch_local.simulation.github import GithubWebhooks
from relaunch_local.simulation.notices.github_refusals import REFUSALS
from relaunch_local.simulation.notices.github_statuses import FakeStatuses

_RECEIVER = {"kind": "sns", "topic_arn": f"arn:aws:sns:{REGION}:{ACCOUNT}:training", "kinds": ["interrupted"]}


def tell_of_notices(stories: Stories) -> None:
    """A topic is gone for a while, is left alone, and then gets its notice; a message is tried for the last time.

    The commit shows the change, also after GitHub has limited the rate.
    """
    world = stories.world
    world.answers["secretsmanager", "GetSecretValue"] = lambda **_: {"SecretString": TOKEN}
    statuses = FakeStatuses(world.region.clock.now, refuse=_limit_once())
    github = GithubApi(GithubWebhooks(world.region.clock.now, lambda _webhook, _guid: None), statuses=statuses)
    with serve_github(github) as api:
        world.give("send_notices", RELAUNCH_GITHUB_API_URL=api.url)
        _send(stories)
    assert [each.state for shown in statuses.statuses.values() for each in shown] == ["pending"]


def _limit_once() -> Callable[[], Answer | None]:
    answers = iter([REFUSALS["a-limit-by-429"].answer])
    return lambda: next(answers, None)


def _send(stories: Stories) -> None:
    world = stories.world
    stored = {"Name": "/relaunch/relaunch/notices/mail", "Value": json.dumps(_RECEIVER)}
    world.answers["ssm", "GetParametersByPath"] = lambda **_: {"Parameters": [stored]}
    world.answers["sns", "Publish"] = _not_found
    event = load_event("relaunch.job-state-change")
    event["time"] = event["detail"]["time"] = world.region.clock.now().isoformat()
    event["detail"] |= {"state": "WAITING", "state_before": "STOPPING", "changed": ["state"]}
    stories.deliver("send_notices", json.dumps(event))
    stories.pass_time(60.0)
    world.answers["sns", "Publish"] = lambda **_: {"MessageId": "m"}
    batch = make_batch(json.dumps(event))
    (record,) = batch["Records"]
    record["attributes"]["ApproximateReceiveCount"] = world.variable("send_notices", "RELAUNCH_MAX_RECEIVE_COUNT")
    record["eventSourceARN"] = f"arn:aws:sqs:{REGION}:{ACCOUNT}:relaunch-NoticesQueue-{SUFFIX}"
    with world.function("send_notices") as dependencies:
        consumer("send_notices")(batch, FakeContext(), dependencies)


def _not_found(**_: Any) -> Any:
    raise ClientError({"Error": {"Code": "NotFound", "Message": "Topic does not exist"}}, "Publish")
