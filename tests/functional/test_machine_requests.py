"""Requests of machines in the function's own handler: what is no request, and what is tried again."""

from typing import Any

from fakes.dependencies import make_dependencies
from fakes.functions import Functions
from fakes.metrics import ListMetrics
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.ports import TransientError

REQUEST = '{"machine_id": "m-2b8f04c7d95e4a6f1c3b7e90"}'


class UnreachableMachines:
    """Implements MachineStore while DynamoDB cannot be reached."""

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any, **__: Any) -> Any:
            raise TransientError(f"{name}: no answer")

        return fail


def test_what_names_no_machine_is_given_up_at_once_and_the_rest_goes_on() -> None:
    functions = Functions()

    assert functions.deliver("request_machine", "{", "[]", "{}", '{"machine_id": 7}', '{"machine_id": ""}') == []
    assert len(functions.dead_letters.reasons) == 5
    assert functions.dead_letters.reasons[2:] == ["the message names no machine_id"] * 3


def test_a_request_is_left_to_its_queue_while_the_table_cannot_be_reached() -> None:
    metrics = ListMetrics()
    functions = Functions(make_dependencies(machines=UnreachableMachines(), metrics=metrics))

    assert functions.deliver("request_machine", REQUEST) == [REQUEST]
    assert metrics.of(Metric.MESSAGES_FAILED) == [MetricDatum(Metric.MESSAGES_FAILED, label="machines")]
