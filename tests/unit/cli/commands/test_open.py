"""open: links to the AWS console."""

import os

import pytest
import typer

from fakes.builders import INSTANCE_ID, make_container, make_definition, make_revision
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch_cli.errors import CommandError


@pytest.fixture(autouse=True)
def opened(monkeypatch) -> list[str]:
    """The links that a browser was given, on a machine whose environment points to AWS."""
    links: list[str] = []
    monkeypatch.setattr(typer, "launch", lambda link: links.append(link) or 0)
    for name in [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL")]:
        monkeypatch.delenv(name)
    return links


@pytest.fixture
def job_id(session) -> str:
    job_id = session.submit()
    session.run(session.launch(job_id))
    return job_id


def links_of(text: str) -> dict[str, str]:
    return dict(line.split() for line in text.splitlines())


def test_the_task_is_opened_and_all_links_are_printed_each_on_one_line(relaunch, session, job_id, opened):
    task_id = session.jobs.job(job_id).current_attempt.task_id.rsplit("/", 1)[-1]

    result = relaunch("open", job_id, columns=40)

    links = links_of(result.stdout)
    assert result.exit_code == 0
    assert opened == [links["task"]]
    assert f"/tasks/{task_id}/configuration?region=" in links["task"]
    assert links["log"].endswith(f"log-group/$252Fecs$252Ftrainer/log-events/train$252Fmain$252F{task_id}")
    assert links["instance"].endswith(f"#InstanceDetails:instanceId={INSTANCE_ID}")


@pytest.mark.parametrize("page", ["log", "instance"])
def test_another_page_is_opened(relaunch, job_id, opened, page):
    assert opened == [links_of(relaunch("open", job_id, page).stdout)[page]]


@pytest.mark.parametrize("option", ["--print", "--json"])
def test_what_is_printed_alone_is_not_opened(relaunch, job_id, opened, option):
    result = relaunch("open", job_id, option)

    assert opened == []
    assert result.exit_code == 0
    if option == "--json":
        assert result.document == {"links": links_of(relaunch("open", job_id, "--print").stdout)}


def test_an_attempt_has_links_of_its_own(relaunch, session):
    job_id = session.run_interrupted_job()

    first, latest = (links_of(relaunch("open", job_id, *more, "--print").stdout) for more in (["--attempt", "1"], []))

    assert first["task"] != latest["task"]
    assert first["instance"] != latest["instance"]
    assert relaunch("open", job_id, "--attempt", "3").exit_code == 3


def test_a_job_without_a_task_has_nothing_to_open(relaunch, session, opened):
    result = relaunch("open", session.submit())

    assert (result.exit_code, result.stdout, opened) == (3, "", [])
    assert "has no task yet" in result.stderr


def test_a_task_that_has_no_instance_yet_has_the_other_links(relaunch, session, opened):
    job_id = session.submit()
    session.launch(job_id)

    result = relaunch("open", job_id, "instance")

    assert result.exit_code == 3
    assert list(links_of(result.stdout)) == ["task", "log"]
    assert "has no instance to open" in result.stderr
    assert opened == []
    assert relaunch("open", job_id, "--json").document["links"]["instance"] is None


def test_a_log_that_is_not_in_cloudwatch_has_no_link_and_that_is_told(relaunch, session, job_id, monkeypatch):
    def refuse(_arn: str, _container: str):
        raise CommandError("container main does not log to CloudWatch Logs", exit_code=3)

    monkeypatch.setattr(session.logs, "destination", refuse)

    result = relaunch("open", job_id)

    assert result.exit_code == 0
    assert list(links_of(result.stdout)) == ["task", "instance"]
    assert "no link of its log: container main does not log to CloudWatch Logs" in result.stderr


def test_the_console_knows_nothing_of_another_endpoint(relaunch, job_id, opened, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_ECS", "http://127.0.0.1:1")

    result = relaunch("open", job_id)

    assert (result.exit_code, opened) == (0, [])
    assert "not opened: AWS_ENDPOINT_URL is set" in result.stderr


def test_a_job_on_kubernetes_is_not_in_the_aws_console(relaunch, session, opened):
    workload = KubernetesWorkload("trainer:1")
    definition = make_definition(task_definition="", container="main", target=Target.ACK, kubernetes=workload)
    revision = make_revision(containers=(make_container(),))
    job_id = session.submit()
    job = session.jobs.job(job_id)
    other = type(job)(f"{job_id}x", definition, job.trigger, revision, job.accepted_at, wake_at=job.accepted_at)
    session.jobs.create_job(other, ())

    result = relaunch("open", other.job_id)

    assert (result.exit_code, opened) == (2, [])
    assert "runs on ack, which the AWS console does not show" in result.stderr
