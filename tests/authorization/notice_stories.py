"""What send_notices does with events of jobs, by its entry point and with its role's permissions alone."""

import json
from typing import Any

from botocore.exceptions import ClientError

from authorization.stories import Stories
from fakes.functions import FakeContext, make_batch
from fakes.role_world import ACCOUNT, REGION, SUFFIX
from fakes.webhook import load_event
from relaunch.entrypoints.consumers import consumer

_RECEIVER = {"kind": "sns", "topic_arn": f"arn:aws:sns:{REGION}:{ACCOUNT}:training", "kinds": ["interrupted"]}


def tell_of_notices(stories: Stories) -> None:
    """A topic is gone for a while, is left alone, and then gets its notice; a message is tried for the last time."""
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
