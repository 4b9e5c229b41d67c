"""A message that is sent again keeps its origin: the deaths of functions are counted for that."""

from datetime import UTC, datetime

from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.outages import SQS, Outage, Outages
from relaunch_local.simulation.aws.runtime import Invocation, Runtime
from relaunch_local.simulation.aws.sqs import Queues
from relaunch_local.simulation.aws.sqs_client import ModelSqs
from relaunch_local.simulation.aws.template import QueueSettings
from relaunch_local.simulation.chance import Chance


def test_the_deaths_of_a_message_are_those_of_all_its_copies() -> None:
    clock = Clock()
    chance = Chance(1, clock.now, frozenset())
    settings = {"Q": QueueSettings("Q", 180.0, 1000, "D"), "D": QueueSettings("D", 30.0, 0, "")}
    queues = Queues(settings, clock, chance, lambda _line: None, Outages(clock, chance))
    runtime = Runtime(clock, chance, lambda _line: None)
    sqs = ModelSqs(queues, runtime)
    queues.send("Q", "a")
    for _ in range(2):
        clock.advance(1.0)
        (message,) = queues.queues["Q"].receive(10)
        queues.deaths[message.origin] += 1
        runtime.current = Invocation(1, "submit_job", [message])
        sqs.send_message(QueueUrl="https://sqs/1/Q", MessageBody="a")
        queues.queues["Q"].delete(message)
        runtime.current = None
    clock.advance(1.0)
    (message,) = queues.queues["Q"].receive(10)
    runtime.current = Invocation(1, "submit_job", [message])

    sqs.send_message(QueueUrl="https://sqs/1/D", MessageBody="a")

    assert [letter.deaths for letter in queues.dead_letters] == [2]


def test_an_outage_of_sqs_is_known_by_its_time() -> None:
    clock = Clock()
    chance = Chance(1, clock.now)
    # Its end is between two microseconds, and the clock's before it.
    outages = Outages(clock, chance, [Outage(SQS, 60.0, 120.0000004)])
    states = []
    outages.on_end.append(lambda service: states.append(outages.is_away(service)))
    for _ in range(4):
        states.append(outages.is_away(SQS))
        clock.advance(60.0)

    assert states == [False, True, True, False, False]
    assert not outages.is_away("ec2")
    assert (outages.over_at - datetime(2026, 1, 1, 0, 3, tzinfo=UTC)).total_seconds() == 0
