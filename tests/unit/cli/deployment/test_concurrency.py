"""How much of an account is reserved."""

import re

import pytest

from relaunch_cli.deployment.concurrency import RESERVATIONS, Account, plan_reservations, request_of
from relaunch_local.stack.new_account_quotas import NewAccountQuotas

WARNINGS, WEBHOOK = (each.parameter for each in RESERVATIONS)


def is_taken(text: str) -> bool:
    """Whether Service Quotas takes the request that a text shows."""
    (found,) = re.findall(r"--service-code (\w+) --quota-code (\S+) --desired-value (\d+)", text)
    service, code, value = found
    request = {"ServiceCode": service, "QuotaCode": code, "DesiredValue": float(value)}
    return NewAccountQuotas().call("RequestServiceQuotaIncrease", request)[0] == 200


@pytest.mark.parametrize(
    ("limit", "unreserved", "present", "warnings", "webhook", "asked"),
    [
        pytest.param(10, 10, {}, 0, 0, 130, id="a new account"),
        pytest.param(100, 100, {}, 0, 0, 130, id="nothing beyond what must stay"),
        pytest.param(109, 109, {}, 0, 9, 130, id="too little for warnings, enough for the webhook"),
        pytest.param(104, 104, {}, 0, 0, 130, id="too little for both"),
        pytest.param(110, 110, {}, 10, 0, 130, id="warnings first"),
        pytest.param(117, 117, {}, 10, 7, 130, id="a part for the webhook"),
        pytest.param(130, 130, {}, 10, 20, None, id="just enough"),
        pytest.param(1000, 1000, {}, 10, 20, None, id="the default quota"),
        pytest.param(1000, 105, {}, 0, 5, 1025, id="others have reserved"),
        pytest.param(130, 100, {WARNINGS: 10, WEBHOOK: 20}, 10, 20, None, id="deployed again"),
        pytest.param(110, 100, {WARNINGS: 10}, 10, 0, 130, id="deployed again, small"),
        pytest.param(110, 100, {WEBHOOK: 10}, 0, 10, 130, id="what another gives back is not free yet"),
        pytest.param(1000, 950, {WEBHOOK: 50}, 10, 50, None, id="never less than there is"),
        pytest.param(105, 102, {WEBHOOK: 3}, 0, 5, 130, id="a small one grows"),
        pytest.param(10, 7, {WEBHOOK: 3}, 0, 3, 130, id="the limit was lowered"),
    ],
)
def test_an_account_gives_what_it_has(limit, unreserved, present, warnings, webhook, asked):
    plan = plan_reservations(Account(limit, unreserved), present, {})

    assert plan.parameters == {WARNINGS: warnings, WEBHOOK: webhook}
    assert plan.notes[0] == f"reserved concurrency: {WARNINGS}={warnings}, {WEBHOOK}={webhook}"
    if asked is None:
        assert len(plan.notes) == 1
    else:
        assert f"ask for {asked} or more, then deploy again: aws service-quotas" in plan.notes[1]
        assert is_taken(plan.notes[1])
        assert f"the account runs {limit} functions at once, {unreserved} of them unreserved" in plan.notes[1]


def test_what_the_user_names_is_left_alone_and_counts():
    plan = plan_reservations(Account(130, 130), {}, {WEBHOOK: 25})

    assert plan.parameters == {WARNINGS: 0}
    assert plan.notes[1].endswith("--desired-value 1001 (it takes no less), or a case at AWS Support for 135")
    assert plan_reservations(Account(130, 105), {WEBHOOK: 25}, {WEBHOOK: 5}).parameters == {WARNINGS: 10}


def test_the_reservations_that_are_planned_never_leave_less_than_lambda_insists_on():
    for limit in range(0, 1001, 7):
        planned = plan_reservations(Account(limit, limit), {}, {}).parameters
        assert sum(planned.values()) == 0 or limit - sum(planned.values()) >= 100


@pytest.mark.parametrize("limit", [1, 999, 1000, 1001, 5000])
def test_a_request_is_above_the_default_and_names_the_other_way_for_less(limit):
    text = request_of(limit)

    assert is_taken(text)
    assert text.endswith(f"case at AWS Support for {limit}" if limit <= 1000 else f"--desired-value {limit}")
