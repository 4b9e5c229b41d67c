"""How Ec2Fleet finds, describes, lists and ends instances; test_create_fleet.py has what it requests."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.stub import Stubber

from fakes.builders import INSTANCE_ID
from fakes.fleet import MACHINE_ID, STACK
from fakes.unreachable_aws import UnreachableAws
from relaunch.adapters.aws.ec2.fleet import Ec2Fleet
from relaunch.core.machines.events import InstanceState
from relaunch.ports import PermanentError, Termination, TransientError

SERVICE = "ec2"
FIRST, SECOND, THIRD, FOURTH = (f"i-0000000000000000{number}" for number in (1, 2, 3, 4))
OF_STACK = {"Name": "tag:relaunch:stack", "Values": ["relaunch-prod"]}
OF_MACHINE = {"Name": "tag:relaunch:machine", "Values": [MACHINE_ID]}
LIVING = {
    "Name": "instance-state-name",
    "Values": ["pending", "running", "stopping", "stopped", "shutting-down"],
}
ENDING, ABSENT, REFUSED = Termination.ENDING, Termination.ABSENT, Termination.REFUSED


def page(*instance_ids: str, state: str = "running", token: str = "") -> dict[str, Any]:
    """Return a page of DescribeInstances with a reservation for each instance, as fleets have."""
    rows = [{"Instances": [{"InstanceId": each, "State": {"Name": state}}]} for each in instance_ids]
    return {"Reservations": rows, **({"NextToken": token} if token else {})}


def not_found(*instance_ids: str) -> tuple[str, str]:
    names = ", ".join(instance_ids)
    plural = f"s '{names}' do" if len(instance_ids) > 1 else f" '{names}' does"
    return "InvalidInstanceID.NotFound", f"The instance ID{plural} not exist"


NOT_ALLOWED = ("UnauthorizedOperation", "You are not authorized to perform this operation.")
PROTECTED = ("OperationNotPermitted", f"The instance '{FIRST}' may not be terminated.")


class Script:
    """Answers to calls about instances, in order."""

    def __init__(self, stubber: Stubber) -> None:
        self._stubber = stubber

    def describes(self, ids: Sequence[str], answer: dict[str, Any] | tuple[str, str]) -> None:
        self._expect("describe_instances", ids, answer)

    def terminates(self, ids: Sequence[str], answer: tuple[str, str] | None = None) -> None:
        changes = [{"InstanceId": each, "CurrentState": {"Name": "shutting-down"}} for each in ids]
        self._expect("terminate_instances", ids, answer or {"TerminatingInstances": changes})

    def _expect(self, call: str, ids: Sequence[str], answer: dict[str, Any] | tuple[str, str]) -> None:
        expected = {"InstanceIds": list(ids)}
        if isinstance(answer, dict):
            self._stubber.add_response(call, answer, expected)
            return
        code, message = answer
        self._stubber.add_client_error(call, code, message, 400, expected_params=expected)


@pytest.fixture
def script(stubber: Stubber) -> Script:
    return Script(stubber)


@pytest.fixture
def fleet(stubber: Stubber) -> Ec2Fleet:
    return Ec2Fleet(stubber.client, stubber.client, STACK)


def test_a_machine_is_found_by_its_tag_in_this_stack_on_all_pages(stubber: Stubber, fleet: Ec2Fleet) -> None:
    asked = {"Filters": [OF_MACHINE, OF_STACK], "MaxResults": 1000}
    stubber.add_response("describe_instances", page(FIRST, token="more"), asked)
    stubber.add_response("describe_instances", page(SECOND, state="terminated"), {**asked, "NextToken": "more"})

    found = [(each.instance_id, each.state) for each in fleet.find(MACHINE_ID)]

    assert found == [(FIRST, InstanceState.RUNNING), (SECOND, InstanceState.TERMINATED)]


def test_a_machine_without_an_instance_has_none(stubber: Stubber, fleet: Ec2Fleet) -> None:
    stubber.add_response("describe_instances", page())

    assert fleet.find(MACHINE_ID) == []


def test_the_instances_of_the_stack_are_listed_in_pages_except_those_that_ended(
    stubber: Stubber, fleet: Ec2Fleet
) -> None:
    asked = {"Filters": [OF_STACK, LIVING], "MaxResults": 1000}
    stubber.add_response("describe_instances", page(FIRST, SECOND, token="more"), asked)
    stubber.add_response("describe_instances", page(THIRD), {**asked, "NextToken": "more"})

    assert [[each.instance_id for each in page] for page in fleet.list_instances()] == [[FIRST, SECOND], [THIRD]]


def test_a_page_that_comes_again_does_not_go_on_for_ever(stubber: Stubber, fleet: Ec2Fleet) -> None:
    for _ in range(2):
        stubber.add_response("describe_instances", page(FIRST, token="more"))

    with pytest.raises(TransientError, match="the token of that page"):
        list(fleet.list_instances())


def test_instances_are_described_in_the_order_of_the_question_and_missing_ones_are_none(
    script: Script, fleet: Ec2Fleet
) -> None:
    script.describes([FIRST, SECOND, THIRD], page(THIRD, FIRST))

    described = fleet.describe([FIRST, SECOND, THIRD])

    assert [(each, instance is not None) for each, instance in described.items()] == [
        (FIRST, True),
        (SECOND, False),
        (THIRD, True),
    ]


def test_of_nothing_nothing_is_asked(fleet: Ec2Fleet) -> None:
    assert fleet.describe([]) == {}
    assert fleet.terminate([]) == {}


def test_an_instance_that_is_named_twice_is_asked_about_once(script: Script, fleet: Ec2Fleet) -> None:
    script.describes([FIRST], page(FIRST))
    script.terminates([FIRST])

    assert list(fleet.describe([FIRST, FIRST])) == [FIRST]
    assert fleet.terminate([FIRST, FIRST]) == {FIRST: ENDING}


def test_unknown_ids_that_ec2_names_do_not_keep_the_others_from_an_answer(script: Script, fleet: Ec2Fleet) -> None:
    script.describes([FIRST, SECOND, THIRD, FOURTH], not_found(SECOND, FOURTH))
    script.describes([FIRST, THIRD], page(FIRST, THIRD))

    described = fleet.describe([FIRST, SECOND, THIRD, FOURTH])

    assert [each for each, instance in described.items() if instance is None] == [SECOND, FOURTH]


def test_ids_that_ec2_knows_none_of_are_none(script: Script, fleet: Ec2Fleet) -> None:
    script.describes([FIRST, SECOND], not_found(FIRST, SECOND))

    assert fleet.describe([FIRST, SECOND]) == {FIRST: None, SECOND: None}


def test_a_malformed_id_that_ec2_does_not_name_is_found_by_halves(script: Script, fleet: Ec2Fleet) -> None:
    malformed = ("InvalidInstanceID.Malformed", "Invalid id")
    script.describes([FIRST, "i-x", THIRD], malformed)
    script.describes([FIRST], page(FIRST))
    script.describes(["i-x", THIRD], malformed)
    script.describes(["i-x"], malformed)
    script.describes([THIRD], page(THIRD))

    described = fleet.describe([FIRST, "i-x", THIRD])

    assert [each for each, instance in described.items() if instance is None] == ["i-x"]


def test_an_id_that_begins_like_an_unknown_one_is_another(script: Script, fleet: Ec2Fleet) -> None:
    script.describes(["i-0a", "i-0ab"], not_found("i-0ab"))
    script.describes(["i-0a"], page("i-0a"))

    described = fleet.describe(["i-0a", "i-0ab"])

    assert [each for each, instance in described.items() if instance is None] == ["i-0ab"]


def test_many_instances_are_described_in_parts(script: Script, fleet: Ec2Fleet) -> None:
    ids = [f"i-{number:017x}" for number in range(250)]
    for part in (ids[:100], ids[100:200], ids[200:]):
        script.describes(part, page(*part))

    assert list(fleet.describe(ids)) == ids


def test_instances_end_in_one_call(script: Script, fleet: Ec2Fleet) -> None:
    script.terminates([FIRST, SECOND])

    assert fleet.terminate([FIRST, SECOND]) == {FIRST: ENDING, SECOND: ENDING}


def test_up_to_a_thousand_instances_end_in_one_call(script: Script, fleet: Ec2Fleet) -> None:
    ids = [f"i-{number:017x}" for number in range(1001)]
    script.terminates(ids[:1000])
    script.terminates(ids[1000:])

    assert set(fleet.terminate(ids).values()) == {ENDING}


def test_an_instance_that_is_gone_does_not_keep_the_others_from_ending(script: Script, fleet: Ec2Fleet) -> None:
    script.terminates([FIRST, SECOND, THIRD], not_found(FIRST))
    script.terminates([SECOND, THIRD])

    assert fleet.terminate([FIRST, SECOND, THIRD]) == {FIRST: ABSENT, SECOND: ENDING, THIRD: ENDING}


def test_an_instance_that_aged_out_is_refused_by_ec2_and_absent(script: Script, fleet: Ec2Fleet) -> None:
    # Its tags are gone, so that no policy allows its end, and then it is not known at all.
    script.terminates([FIRST, SECOND, THIRD], NOT_ALLOWED)
    script.terminates([FIRST])
    script.terminates([SECOND, THIRD], NOT_ALLOWED)
    script.terminates([SECOND], NOT_ALLOWED)
    script.terminates([THIRD])
    script.describes([SECOND], not_found(SECOND))

    assert fleet.terminate([FIRST, SECOND, THIRD]) == {FIRST: ENDING, SECOND: ABSENT, THIRD: ENDING}


@pytest.mark.parametrize("error", [NOT_ALLOWED, PROTECTED], ids=["no permission", "termination protection"])
@pytest.mark.parametrize(
    ("state", "termination"),
    [("running", REFUSED), ("stopped", REFUSED), ("shutting-down", ENDING), ("terminated", ENDING)],
)
def test_an_instance_that_may_not_be_ended_is_refused_unless_it_ends_anyway(
    script: Script, fleet: Ec2Fleet, error: tuple[str, str], state: str, termination: Termination
) -> None:
    script.terminates([FIRST], error)
    script.describes([FIRST], page(FIRST, state=state))

    assert fleet.terminate([FIRST]) == {FIRST: termination}


def test_an_instance_that_is_protected_is_refused_and_the_others_end(script: Script, fleet: Ec2Fleet) -> None:
    script.terminates([FIRST, SECOND], PROTECTED)
    script.terminates([SECOND])
    script.describes([FIRST], page(FIRST))

    assert fleet.terminate([FIRST, SECOND]) == {FIRST: REFUSED, SECOND: ENDING}


def test_an_instance_in_a_state_between_is_ended_later_and_the_others_now(script: Script, fleet: Ec2Fleet) -> None:
    script.terminates([FIRST, SECOND], ("IncorrectInstanceState", f"The instance '{FIRST}' is not in a valid state"))
    script.terminates([SECOND])
    script.describes([FIRST], page(FIRST, state="pending"))

    with pytest.raises(TransientError, match=f"EC2 does not terminate {FIRST} in their present state"):
        fleet.terminate([FIRST, SECOND])


def test_an_instance_in_a_wrong_state_that_is_that_of_ending_is_ending(script: Script, fleet: Ec2Fleet) -> None:
    script.terminates([FIRST], ("IncorrectInstanceState", "so it is"))
    script.describes([FIRST], page(FIRST, state="shutting-down"))

    assert fleet.terminate([FIRST]) == {FIRST: ENDING}


OK, FAILED = {"Status": "ok"}, {"Status": "impaired"}


@pytest.mark.parametrize(
    ("checks", "is_impaired"),
    [
        ({"SystemStatus": OK, "InstanceStatus": OK}, False),
        ({"SystemStatus": FAILED, "InstanceStatus": OK}, True),
        ({"SystemStatus": OK, "InstanceStatus": FAILED}, True),
        ({"SystemStatus": OK, "InstanceStatus": OK, "AttachedEbsStatus": FAILED}, True),
        ({"SystemStatus": OK, "InstanceStatus": {"Status": "initializing"}}, False),
        ({"SystemStatus": {"Status": "insufficient-data"}, "InstanceStatus": {"Status": "not-applicable"}}, False),
        ({}, False),
    ],
)
def test_an_instance_is_impaired_if_one_of_its_status_checks_fails(
    stubber: Stubber, fleet: Ec2Fleet, checks: dict[str, Any], *, is_impaired: bool
) -> None:
    # SECOND does not run: EC2 leaves it out.
    answer = {"InstanceStatuses": [{"InstanceId": FIRST, **checks}]}
    stubber.add_response("describe_instance_status", answer, {"InstanceIds": [FIRST, SECOND]})

    assert fleet.find_impaired([FIRST, SECOND]) == ({FIRST} if is_impaired else set())


def test_an_instance_that_ec2_does_not_know_does_not_hide_another_ones_status(
    stubber: Stubber, fleet: Ec2Fleet
) -> None:
    code, message = not_found(FIRST)
    stubber.add_client_error(
        "describe_instance_status", code, message, 400, expected_params={"InstanceIds": [FIRST, SECOND]}
    )
    answer = {"InstanceStatuses": [{"InstanceId": SECOND, "InstanceStatus": FAILED}]}
    stubber.add_response("describe_instance_status", answer, {"InstanceIds": [SECOND]})

    assert fleet.find_impaired([FIRST, SECOND]) == {SECOND}


Call = Callable[[Ec2Fleet], object]
CALLS = [
    pytest.param("describe_instances", lambda fleet: fleet.find(MACHINE_ID), f"machine {MACHINE_ID}", id="find"),
    pytest.param("describe_instances", lambda fleet: fleet.describe([INSTANCE_ID]), "describing 1", id="describe"),
    pytest.param(
        "describe_instance_status", lambda fleet: fleet.find_impaired([INSTANCE_ID]), "status checks of 1", id="status"
    ),
    pytest.param(
        "describe_instances", lambda fleet: list(fleet.list_instances()), "the instances of stack", id="list_instances"
    ),
    pytest.param(
        "terminate_instances", lambda fleet: fleet.terminate([INSTANCE_ID]), "terminating 1 instances", id="terminate"
    ),
]


@pytest.mark.parametrize(("operation", "call", "doing"), CALLS)
@pytest.mark.parametrize(
    ("code", "kind"),
    [("RequestLimitExceeded", TransientError), ("InternalError", TransientError), ("AuthFailure", PermanentError)],
)
def test_a_call_that_ec2_does_not_answer_is_an_error_of_the_port(
    stubber: Stubber, operation: str, call: Call, doing: str, code: str, kind: type[Exception]
) -> None:
    stubber.add_client_error(operation, code, "so it is")

    with pytest.raises(kind, match=f"{doing}.*{code}"):
        call(Ec2Fleet(stubber.client, stubber.client, STACK))


@pytest.mark.parametrize(("operation", "call", "doing"), CALLS)
def test_a_call_without_an_answer_is_transient(operation: str, call: Call, doing: str) -> None:
    unreachable = UnreachableAws("ec2", ReadTimeoutError(endpoint_url="http://127.0.0.1:9"))

    with pytest.raises(TransientError, match=doing):
        call(Ec2Fleet(unreachable.client, unreachable.client, STACK))


def test_an_end_that_took_effect_without_an_answer_is_repeated_without_harm(stubber: Stubber, script: Script) -> None:
    stubber.add_client_error("terminate_instances", "RequestTimeout", "no answer", 500)
    script.terminates([FIRST])
    fleet = Ec2Fleet(stubber.client, stubber.client, STACK)

    with pytest.raises(TransientError):
        fleet.terminate([FIRST])

    assert fleet.terminate([FIRST]) == {FIRST: ENDING}
