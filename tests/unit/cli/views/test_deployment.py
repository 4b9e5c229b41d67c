"""What `relaunch deploy` and `uninstall` print: quotas as they are after the deployment, and tables of 80 columns."""

import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from fakes.cli_session import flat
from relaunch.core.offerings.quotas import QUOTA_CODES
from relaunch_cli.deployment.findings import AccountRoles, ParameterChange, QuotaRequests, QuotaState, Stack, Survey
from relaunch_cli.deployment.kept import kept_after
from relaunch_cli.views.deployment import render_end, render_kept, render_removal, render_survey, survey_json

G_SPOT = "L-3819A6DF"
G_ON_DEMAND = "L-DB2E81BA"


def survey(quotas: QuotaState | None = None, **given: str) -> Survey:
    """What is found in a new account."""
    roles = AccountRoles(missing=(), github_provider_arn="")
    return Survey(
        stack="relaunch",
        account="111122223333",
        region="eu-central-1",
        given=given,
        training=None,
        has_machines=True,
        before={},
        roles=roles,
        quotas=quotas or QuotaState(),
    )


def lines(what: RenderableType) -> list[str]:
    """The lines of a terminal of 80 columns."""
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(what, crop=False)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_what_was_requested_is_not_said_to_be_requested_by_nobody():
    plan = survey(QuotaState(dict.fromkeys(QUOTA_CODES, 0.0)))

    shown = lines(render_end(plan, QuotaRequests(made=[G_SPOT, G_ON_DEMAND])))
    quotas = survey_json(plan, is_deployed=True, requests=QuotaRequests(made=[G_SPOT]))["quotas"]

    text = flat(" ".join(shown))
    assert f"({G_SPOT}): 0 vCPUs, 8 are requested" in text
    assert "nobody has requested" not in text
    assert "request-service-quota-increase" not in text
    # What nobody has asked for is one line, so that the next command stays in sight.
    assert "quotas of P, Trn, Inf are 0 too: `relaunch doctor` says which one a definition needs" in text
    assert len(shown) < 12
    # In a pipe no line is wrapped or cut.
    piped = Console(file=io.StringIO(), width=80)
    piped.print(render_end(plan, QuotaRequests()), soft_wrap=True)
    assert "which one a definition needs\n" in piped.file.getvalue()
    assert {each["code"]: each["requested_vcpus"] for each in quotas}[G_SPOT] == 8.0


def test_what_could_not_be_requested_is_told_with_its_command():
    plan = survey(QuotaState({G_SPOT: 0.0}))

    text = flat(" ".join(lines(render_end(plan, QuotaRequests(refused=["the quota could not be requested"])))))

    assert "the quota could not be requested" in text
    assert "nobody has requested any: aws service-quotas request-service-quota-increase" in text
    assert f"--quota-code {G_SPOT}" in text


def test_what_several_nodes_lack_is_said_and_that_nodes_are_counted():
    new = survey(NodesMeet="on")
    old = replace(new, before={"relaunch": Stack("relaunch", "CREATE_COMPLETE")})
    lacks = ["quota L-1: 8 vCPUs of 'G': 3 of g5.xlarge have 12: aws service-quotas"]

    assert "A job of N nodes needs N times the vCPUs" in flat(" ".join(lines(render_end(new, QuotaRequests()))))
    text = flat(" ".join(lines(render_end(old, QuotaRequests(), lacks))))
    assert "need the vCPUs of all of their machines at once: quota L-1: 8 vCPUs of 'G': 3 of g5.xlarge have 12" in text
    assert "A job of N nodes" not in text
    assert survey_json(old, is_deployed=True, for_nodes=lacks)["notes"] == lacks


def test_parameters_that_change_are_shown_before_the_question():
    plan = survey()
    plan = replace(plan, before={name: Stack(name, "CREATE_COMPLETE") for name in ("relaunch", "relaunch-machines")})
    changes = [
        ParameterChange("relaunch", "MaxMachines", "20", "1"),
        ParameterChange("relaunch", "MachineTags", "", "team=vision"),
        ParameterChange("relaunch", "OriginSecrets", "****", "****"),
    ]

    text = flat(" ".join(lines(render_survey(plan, changes))))

    assert "relaunch-machines update if the template differs: launch templates" in text
    assert "relaunch update: ten functions" in text
    assert "PARAMETERS THAT CHANGE relaunch MaxMachines 20 → 1 relaunch MachineTags empty → team=vision" in text
    assert "relaunch OriginSecrets is set again" in text
    shown = survey_json(plan, changes, is_deployed=False)["changes"]
    assert shown[0] == {"stack": "relaunch", "name": "MaxMachines", "before": "20", "after": "1"}
    assert "PARAMETERS" not in flat(" ".join(lines(render_survey(plan))))


@pytest.mark.parametrize("switches", [{}, {"Webhook": "on", "Uploads": "on", "Notices": "on", "SnsTopicArns": "arn"}])
def test_the_table_of_costs_fits_80_columns(switches: dict[str, str]):
    shown = lines(render_survey(survey(**switches)))

    start = next(number for number, line in enumerate(shown) if line.startswith("WHILE NOTHING IS TRAINED"))
    table = [line for line in shown[start:] if line][:7]
    assert table[0].endswith("USD A MONTH")
    assert max(map(len, table)) <= 80
    assert all(line[-3] == "." for line in table[1:5])


def test_the_question_of_a_removal_says_what_is_deleted_and_what_is_kept():
    training = Stack("relaunch-training", "CREATE_COMPLETE", outputs={"LogGroupName": "/relaunch/training"})
    kept = kept_after([training], "relaunch", AccountRoles((), ""), None)

    text = flat(" ".join(lines(render_removal([training], kept, "111122223333", "eu-central-1"))))

    deleted, _, rest = text.partition("Will be kept; the command that deletes each is shown at the end: ")
    assert deleted.endswith("after all jobs were cancelled: the stack relaunch-training (CREATE_COMPLETE) ")
    assert "log group /relaunch/training: what trainings wrote, until it is 30 days old" in rest


def test_the_end_of_a_removal_breaks_no_word_and_no_command():
    kept = kept_after([], "relaunch", AccountRoles((), ""), None)

    shown = lines(render_kept(kept))

    assert "- service-linked role AWSServiceRoleForECS: the account has it once, others may" in shown
    assert f"    {kept[-1].command}" in shown
    assert len(kept[-1].command) > 80
