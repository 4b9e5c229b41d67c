"""local: faults of the local world, each aimed at what a job runs on."""

import json
import subprocess
import tarfile

import pytest

from fakes.builders import INSTANCE_ID, make_offering
from fakes.cli_session import FakeLocalWorld
from relaunch.core.definitions.accelerator import PurchaseOption


@pytest.fixture
def running(session) -> str:
    job_id = session.submit()
    session.run(session.launch(job_id))
    return job_id


@pytest.mark.parametrize(
    ("options", "lead", "has_rebalance"),
    [((), None, False), (("--lead", "3"), 3.0, False), (("--rebalance-first",), None, True)],
)
def test_the_instance_of_a_job_is_interrupted(relaunch, session, running, options, lead, has_rebalance):
    result = relaunch("local", "interrupt", running, *options)

    assert (result.exit_code, result.stdout) == (0, "")
    assert f"EC2 warns that it takes {INSTANCE_ID} away" in result.stderr
    expected = {"instance_id": INSTANCE_ID, "lead_seconds": lead, "rebalance_first": has_rebalance}
    assert session.local_world.calls == [("interrupt", expected)]


def test_the_instance_of_a_job_is_terminated(relaunch, session, running):
    assert relaunch("local", "terminate", running).exit_code == 0
    assert session.local_world.calls == [("terminate", {"instance_id": INSTANCE_ID})]


@pytest.mark.parametrize(("options", "instances"), [((), 0), (("--end",), None)])
def test_there_is_no_capacity_for_what_it_was_launched_on_until_there_is(
    relaunch, session, running, options, instances
):
    placed = session.jobs.job(running).current_attempt.placement.offering

    result = relaunch("local", "no-capacity", running, *options)

    pool = {"instance_type": placed.instance_type, "purchase": "spot"}
    assert session.local_world.calls == [("capacity", {**pool, "instances": instances})]
    assert f"capacity for {placed.instance_type} spot" in result.stderr


def test_only_spot_is_interrupted(relaunch, session):
    session.offerings.available = (
        make_offering(purchase=PurchaseOption.ON_DEMAND, price_usd_per_hour=1.0, on_demand_usd_per_hour=1.0),
    )
    job_id = session.submit()
    session.run(session.launch(job_id))

    result = relaunch("local", "interrupt", job_id)

    assert result.exit_code == 2
    assert f"`relaunch local terminate {job_id}` ends its instance" in result.stderr
    assert session.local_world.calls == []


@pytest.mark.parametrize("fault", ["interrupt", "terminate"])
def test_a_job_without_a_task_on_an_instance_cannot_lose_it(relaunch, session, running, fault):
    waiting = session.submit("second")
    placed = session.submit("third")
    session.launch(placed)
    session.interrupt(session.jobs.job(running).current_attempt.task_id)

    for job_id, text in (
        (waiting, "was not launched yet"),
        (placed, "has no task on an instance now"),
        (running, "has no task on an instance now"),
        (running, f"`relaunch show {running}` says how its attempts ended"),
        ("resnet-0", "there is no job 'resnet-0'"),
    ):
        result = relaunch("local", fault, job_id)

        assert result.exit_code == 3
        assert text in result.stderr
    assert session.local_world.calls == []


def test_a_job_that_waits_again_has_a_last_place(relaunch, session, running):
    session.interrupt(session.jobs.job(running).current_attempt.task_id)

    assert relaunch("local", "no-capacity", running).exit_code == 0
    assert relaunch("local", "no-capacity", session.submit("second")).exit_code == 3


IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/relaunch/trainer:vision-latest"


def git(*arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    return subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet")
    (tmp_path / "train.py").write_text("print('trained')")
    (tmp_path / "Dockerfile").write_text('FROM python\nCMD ["python", "train.py"]\n')
    definition = {"family": "relaunch-vision", "containerDefinitions": [{"image": "proxy:1"}, {"image": IMAGE}]}
    (tmp_path / "task-definition.json").write_text(json.dumps(definition))
    return tmp_path


def commit() -> str:
    git("add", ".")
    git("commit", "--quiet", "--message", "Train")
    return git("rev-parse", "HEAD")


def test_a_commit_is_pushed_with_the_tags_of_the_workflow(relaunch, session, repository, monkeypatch):
    sha = commit()
    (repository / "later.py").touch()
    names = []

    def control(name, arguments):
        with tarfile.open(arguments["archive"]) as files:
            names.extend(files.getnames())
        return FakeLocalWorld.control(session.local_world, name, arguments)

    monkeypatch.setattr(session.local_world, "control", control)
    session.local_world.answer = {"pushed": ["vision-latest", f"vision-{sha}"], "python": "/opt/ml/bin/python"}
    session.on_pause = [lambda: None] * 40

    result = relaunch("local", "push")

    ((name, arguments),) = session.local_world.calls
    assert result.exit_code == 0, result.stderr
    assert (name, arguments["repository"]) == ("push", "relaunch/trainer")
    assert arguments["tags"] == ["vision-latest", f"vision-{sha}"]
    assert (arguments["entry_point"], arguments["command"]) == ([], ["python", "train.py"])
    assert sorted(names) == ["Dockerfile", "task-definition.json", "train.py"]
    assert f"pushed relaunch/trainer:vision-{sha}" in result.stderr
    assert "what is not committed is not in it" in result.stderr
    assert "`python` is /opt/ml/bin/python, with the packages that it has" in result.stderr
    assert "no job within 30 s: `relaunch events` shows" in result.stderr
    session.local_world.answer = {"pushed": []}
    assert "was pushed before, and starts nothing" in " ".join(relaunch("local", "push").stderr.split())


@pytest.mark.parametrize(
    ("job_ids", "shown"),
    [(("vision-1",), "started vision-1: relaunch logs vision-1 -f"), ((), "it started no job: vision: said why")],
)
def test_a_push_waits_for_what_it_starts(relaunch, session, repository, job_ids, shown):
    sha = commit()
    session.local_world.answer = {"pushed": [f"vision-{sha}"], "python": ""}

    def handle():
        identity = f"ecr:relaunch/trainer:vision-{sha}:sha256:1:now"
        session.deps.events.record_event(identity, "image", "vision: said why", job_ids, session.now())

    session.on_pause = [lambda: None, handle]

    result = relaunch("local", "push")

    assert shown in result.stderr
    assert "`python` is Relaunch's own, without the packages of your training" in result.stderr


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        (None, "", "there is no commit"),
        ("Dockerfile", None, "has no Dockerfile"),
        ("task-definition.json", None, "has no task-definition.json"),
        ("task-definition.json", '{"family": "f"}', "has an image of ECR whose tag ends with latest"),
        (
            "task-definition.json",
            json.dumps({"family": "f", "containerDefinitions": [{"image": IMAGE.replace("latest", "1")}]}),
            "has an image of ECR whose tag ends with latest",
        ),
    ],
)
def test_what_cannot_be_pushed_is_refused_with_what_to_do(relaunch, session, repository, path, text, message):
    if path:
        commit()
        (repository / path).unlink() if text is None else (repository / path).write_text(text)

    result = relaunch("local", "push")

    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert session.local_world.calls == []
