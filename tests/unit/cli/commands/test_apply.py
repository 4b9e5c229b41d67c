"""apply."""

from dataclasses import replace

import pytest

from fakes.builders import make_container, make_definition, make_offering, make_revision
from fakes.cli_machines import own_machine
from fakes.cli_session import DEFINITIONS, flat, invoke, rewrite
from fakes.dependencies import make_dependencies
from fakes.sources import FakeRevisions
from relaunch.core.definitions.accelerator import MeasuredOn
from relaunch.core.definitions.definition import S3Trigger
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.kubernetes.pod_grants import PodGrants
from relaunch.core.revisions.revision import TaskDefinitionGrants
from relaunch.ports import PermanentError

OWN_STOP_TIMEOUT = {"stop_timeout": {"seconds": 90, "set_by": "task definition"}}
OF_NOBODY = {"is_taken_over": False, "owner_before": None}
OF_THE_SAME_OWNER = {
    "is_taken_over": False,
    "owner_before": {
        "repository": None,
        "file": "relaunch.yaml",
        "caller": "arn:aws:iam::111122223333:user/ada",
    },
}


def changes(table: str) -> list[list[str]]:
    return [line.split()[:2] for line in table.splitlines()[1:]]


def test_apply_registers_and_says_what_changed(relaunch, session, file):
    first = relaunch("apply", str(file))
    second = relaunch("apply", str(file))

    assert first.exit_code == second.exit_code == 0
    assert changes(first.stdout) == [["resnet", "replaced"], ["bert", "created"]]
    assert changes(second.stdout) == [["resnet", "unchanged"], ["bert", "unchanged"]]
    assert [each.name for each in session.deps.definitions.list_definitions()] == ["bert", "resnet"]


def test_a_dry_run_registers_nothing(relaunch, session, file):
    result = relaunch("apply", str(file), "--dry-run", "--json")

    assert result.document == {
        "is_dry_run": True,
        "definitions": [
            {"name": "resnet", "change": "replaced", **OF_THE_SAME_OWNER, "notices": [], **OWN_STOP_TIMEOUT},
            {"name": "bert", "change": "created", **OF_NOBODY, "notices": [], **OWN_STOP_TIMEOUT},
        ],
        "rules": [{"name": "relaunch-relaunch-iv6x4gppdng4", "change": "created", "bucket": "acme", "sources": []}],
        "schedules": [],
    }
    assert session.upload_rules.log == []
    assert [each.name for each in session.deps.definitions.list_definitions()] == ["resnet"]


@pytest.mark.parametrize(
    ("own", "shown", "document"),
    [
        (45, "45 s, task definition", {"seconds": 45, "set_by": "task definition"}),
        (None, "90 s, set by Relaunch", {"seconds": 90, "set_by": "relaunch"}),
    ],
)
def test_apply_says_when_sigkill_follows_sigterm(relaunch, session, file, own, shown, document):
    session.deps.revisions.active[:] = [make_revision(containers=(make_container(stop_timeout_seconds=own),))]

    applied = relaunch("apply", str(file), columns=120)
    documents = relaunch("apply", str(file), "--json").document["definitions"]

    assert shown in applied.stdout
    assert document in [each["stop_timeout"] for each in documents]


def test_a_removed_definition_has_no_stop_timeout(relaunch, session, file):
    session.register(make_definition(name="old"))

    *_, removed = relaunch("apply", str(file), "--prune", "--dry-run", "--json").document["definitions"]

    assert removed == {
        "name": "old",
        "change": "removed",
        **OF_THE_SAME_OWNER,
        "notices": [],
        "stop_timeout": None,
    }


def test_prune_removes_what_the_file_does_not_have(relaunch, session, file):
    session.register(make_definition(name="old"))

    kept = relaunch("apply", str(file))
    pruned = relaunch("apply", str(file), "--prune", "--yes")

    assert "old" not in kept.stdout
    assert ["old", "removed", "-", "-"] in [line.split() for line in pruned.stdout.splitlines()]
    assert [each.name for each in session.deps.definitions.list_definitions()] == ["bert", "resnet"]


def test_rules_for_uploads_come_and_go_with_their_last_definition(relaunch, session, file):
    added = relaunch("apply", str(file))
    again = relaunch("apply", str(file))
    file.write_text(DEFINITIONS.partition("  bert:")[0], encoding="utf-8")
    kept = relaunch("apply", str(file))
    session.on_pause = [lambda: None]
    pruned = relaunch("apply", str(file), "--prune", "--yes")

    assert added.stderr == "rule relaunch-relaunch-iv6x4gppdng4 for uploads to acme: created\n"
    assert again.stderr == kept.stderr == ""
    assert pruned.stderr == "rule relaunch-relaunch-iv6x4gppdng4 for uploads to acme: removed\n"
    assert session.upload_rules.list_rules() == []


def test_definitions_registered_before_there_were_rules_get_theirs_with_the_next_apply(relaunch, session, file):
    trigger = S3Trigger("earlier", "in/")
    session.deps.definitions.save_definition(make_definition(name="earlier", triggers=(trigger,)))

    result = relaunch("apply", str(file))

    assert "for uploads to earlier: created" in result.stderr


def test_nothing_is_registered_when_a_rule_is_refused(relaunch, session, file):
    def refuse() -> None:
        raise PermanentError("the event bus is full")

    session.upload_rules.on_change = [refuse]
    result = relaunch("apply", str(file))

    assert result.exit_code == 5
    assert result.stderr.splitlines() == ["nothing was registered", "relaunch: the event bus is full"]
    assert session.deps.definitions.load_definition("bert") is None


def test_rules_that_cannot_be_settled_leave_the_definitions_registered_and_say_so(relaunch, session, file):
    relaunch("apply", str(file))
    file.write_text(DEFINITIONS.partition("  bert:")[0], encoding="utf-8")

    def refuse() -> None:
        raise PermanentError("AccessDenied")

    session.upload_rules.on_change = [refuse]
    session.on_pause = [lambda: None] * 2
    failed = relaunch("apply", str(file), "--prune", "--yes")
    repeated = relaunch("apply", str(file))

    assert failed.exit_code == 5
    assert failed.stderr.startswith("the definitions are registered, but not all rules of triggers are up to date: app")
    assert [each.name for each in session.deps.definitions.list_definitions()] == ["resnet"]
    assert repeated.exit_code == 0
    assert "removed" in repeated.stderr


def test_what_a_replaced_definition_watched_is_watched_until_it_is_replaced(relaunch, session, file):
    relaunch("apply", str(file))
    rewrite(file, "prefix: in/", "prefix: other/")
    seen = []
    session.on_pause = [lambda: seen.extend(each.pattern for each in session.upload_rules.list_rules())]

    changed = relaunch("apply", str(file))

    old, new = seen
    assert ('{"prefix":"in/"}' in old, '{"prefix":"other/"}' in new) == (True, True)
    assert [each.pattern for each in session.upload_rules.list_rules()] == [new]
    assert [line.split()[-1] for line in changed.stderr.splitlines()] == ["created", "removed"]


def test_what_ends_with_ctrl_c_says_what_was_registered(relaunch, session, file):
    def interrupt() -> None:
        raise KeyboardInterrupt

    session.upload_rules.on_change = [interrupt]
    early = relaunch("apply", str(file))
    relaunch("apply", str(file))
    rewrite(file, "prefix: in/", "prefix: other/")
    late = relaunch("apply", str(file))

    assert early.stderr.startswith("nothing was registered")
    assert late.stderr.startswith("the definitions are registered, but not all rules of triggers are up to date")
    assert len(session.upload_rules.list_rules()) == 2


def test_every_problem_is_printed_and_nothing_is_registered(relaunch, session, file):
    file.write_text(DEFINITIONS.replace("16GiB", "16GB").replace("prefix: in/", "prefx: in/"), encoding="utf-8")

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    first, second, summary = result.stderr.splitlines()
    assert first.startswith(f"{file}:5:33: jobs.resnet.accelerator.gpu.memory: `16GB` is not in a binary unit")
    assert second.endswith("jobs.bert.on[0].s3.prefx: unknown key `prefx`; did you mean `prefix`?")
    assert summary == f"relaunch: {file} has 2 problems: nothing was registered"
    assert session.deps.definitions.load_definition("bert") is None


def test_an_overlap_with_a_registered_checkpoint_is_refused(relaunch, session, file):
    session.deps.definitions.save_definition(make_definition(name="writer", checkpoint_uri="s3://acme/in/deeper/"))

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert "overlaps the checkpoints of `writer`" in result.stderr


def test_a_deadline_that_depends_on_an_unknown_machine_is_refused_at_its_estimate(relaunch, session, file):
    rewrite(file, "gpu: {}}", "gpu: {}}\n    estimated_duration: 20h\n    deadline: 36h")

    refused = relaunch("apply", str(file))
    rewrite(file, "gpu: {}}", "gpu: {}}\n    estimated_duration: {on: A10G, hours: 20}\n    deadline: 36h")
    measured = relaunch("apply", str(file))

    assert refused.exit_code == 2
    begin = f"{file}:10:5: jobs.bert: `estimated_duration` has to say on what it was measured, for a `deadline` depends"
    assert refused.stderr.startswith(begin)
    assert "write {on: T4, hours: 20}, for example, or allow one of them only" in flat(refused.stderr)
    assert measured.exit_code == 0
    assert session.deps.definitions.load_definition("bert").estimated_on == MeasuredOn("A10G")


def test_a_definition_that_no_offering_satisfies_is_refused_at_its_line(relaunch, file):
    rewrite(file, "gpu: {}", "gpu: {count: 9}")

    result = relaunch("apply", str(file))

    assert result.exit_code == 4
    assert result.stderr.startswith(f"{file}:7:3: jobs.bert: nothing satisfies this job: ")
    assert "relaunch plan" in result.stderr


def test_a_definition_that_is_only_too_dear_right_now_is_registered(relaunch, session, file):
    rewrite(file, "accelerator: {gpu: {}}", "accelerator: {gpu: {}}\n    purchase: spot\n    max_price_per_hour: 0.01")

    result = relaunch("apply", str(file))

    assert result.exit_code == 0
    assert "nothing right now" in result.stdout
    assert "bert: a job would wait: nothing is available right now: price-cap removed the last" in result.stderr
    assert f"`relaunch plan {file} --rejected` shows why" in result.stderr


def test_a_family_without_an_active_revision_is_refused(relaunch, file):
    rewrite(file, "task_definition: trainer\n    accelerator", "task_definition: trainr\n    accelerator")

    result = relaunch("apply", str(file))

    said = "the family trainr has no ACTIVE revision; did you mean trainer?"
    assert result.exit_code == 2
    assert result.stderr.startswith(f"{file}:7:3: jobs.bert: {said}")


@pytest.mark.usefixtures("_no_configuration")
def test_without_a_stack_a_dry_run_says_how_a_file_is_checked(file):
    dry = invoke("apply", str(file), "--dry-run")
    wet = invoke("apply", str(file))

    assert (dry.exit_code, wet.exit_code) == (5, 5)
    assert f"`relaunch plan {file} --offline` checks it without AWS" in dry.stderr
    assert "--offline" not in wet.stderr


@pytest.mark.parametrize("command", ["apply", "plan"])
def test_a_family_that_the_stack_may_not_run_is_refused_with_what_to_do(relaunch, session, file, command):
    session.deps = replace(session.deps, limits=StackLimits(task_definitions=TaskDefinitionGrants(("relaunch-*",))))

    result = relaunch(command, str(file))
    shown = flat(result.stdout + result.stderr)

    assert result.exit_code == (2 if command == "apply" else 3)
    assert "the stack may not run task definitions of the family trainer: its parameter TaskDefinitionFam" in shown
    assert "has relaunch-*; register the task definition in such a family, or change the parameter" in shown
    assert session.deps.definitions.load_definition("bert") is None


@pytest.mark.parametrize("command", ["apply", "plan"])
def test_what_the_stack_does_not_let_pods_have_is_refused_with_what_to_do(relaunch, session, file, command):
    workload = "kubernetes: {image: evil.example/x, service_account: admin}"
    rewrite(file, "accelerator: {gpu: {}}", f"target: ack\n    {workload}\n    accelerator: {{gpu: {{}}}}")
    session.deps = replace(session.deps, limits=StackLimits(pods=PodGrants(images=("registry.example.com/*",))))

    result = relaunch(command, str(file))
    shown = flat(result.stdout + result.stderr)

    assert result.exit_code == (2 if command == "apply" else 4)
    assert "the stack may not run the image evil.example/x: its parameter KubernetesImages has regis" in shown
    assert "the stack may not give pods the service account admin: its parameter KubernetesServiceAccounts" in shown
    assert session.deps.definitions.load_definition("bert") is None


def test_a_role_that_the_stack_may_not_pass_is_refused_with_what_to_do(relaunch, session, file):
    role = "arn:aws:iam::111122223333:role/admin"
    session.deps.revisions.active[:] = [make_revision(task_role_arn=role)]
    session.deps = replace(session.deps, limits=StackLimits(task_definitions=TaskDefinitionGrants(None, "relaunch/")))

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert f"jobs.bert: the stack may not pass the task role {role}: its parameter TaskRolePath has" in result.stderr
    assert session.deps.definitions.load_definition("bert") is None


def test_a_container_must_be_named_when_there_are_several(relaunch, session, file):
    several = make_revision(containers=(make_container(), make_container(name="sidecar", gpu_count=0, memory_mib=128)))
    session.deps = make_dependencies(jobs=session.jobs, offerings=session.offerings, revisions=FakeRevisions(several))

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert "jobs.bert: trainer:7 has several containers" in result.stderr
    assert "jobs.resnet" not in result.stderr


@pytest.mark.parametrize(
    ("content", "text"), [(None, "cannot be read: No such file or directory"), (b"\xff\xfe", "is not UTF-8 text")]
)
def test_a_file_that_cannot_be_read_is_refused(relaunch, tmp_path, content, text):
    path = tmp_path / "other.yaml"
    if content is not None:
        path.write_bytes(content)

    result = relaunch("apply", str(path))

    assert result.exit_code == 2
    assert text in result.stderr


def test_a_share_of_a_gpu_is_registered_with_notices_on_sharing(relaunch, file):
    rewrite(file, "gpu: {}", "gpu: {memory: 2GiB, compute_percent: 30}")

    result = relaunch("apply", str(file))
    document = relaunch("apply", str(file), "--json").document

    assert result.exit_code == 0
    assert [line.split(":")[0] for line in result.stderr.splitlines()][:3] == ["bert"] * 3
    assert "one CUDA process" in result.stderr
    assert "fail together" in result.stderr
    assert [len(each["notices"]) for each in document["definitions"]] == [0, 3]


def test_a_disk_that_nobody_checks_is_a_notice(relaunch, file):
    rewrite(file, "accelerator: {gpu: {}}", "accelerator: {gpu: {}}\n    disk: 200GiB")

    applied, planned = relaunch("apply", str(file)), relaunch("plan", str(file), "--json")

    assert (applied.exit_code, planned.exit_code) == (0, 0)
    assert "bert: `disk` only counts in the cost" in applied.stderr
    assert [len(each["notices"]) for each in planned.document["plans"]] == [0, 1]


def test_a_job_that_starts_over_after_interruptions_and_may_take_long_is_a_notice(relaunch, file):
    file.write_text(DEFINITIONS.replace("    checkpoint: s3://acme-checkpoints/\n", "", 1), encoding="utf-8")

    applied, planned = relaunch("apply", str(file)), relaunch("plan", str(file), "--json")

    notice, *_rules = applied.stderr.splitlines()
    assert (applied.exit_code, planned.exit_code) == (0, 0)
    assert notice.startswith("resnet: every interruption of a spot instance starts this job from its beginning")
    assert [len(each["notices"]) for each in planned.document["plans"]] == [1, 0]


def test_an_isolated_share_needs_a_part_of_a_gpu(relaunch, file):
    rewrite(file, "gpu: {}", "gpu: {memory: 2GiB, compute_percent: 30, isolation: required}")

    result = relaunch("apply", str(file))

    assert result.exit_code == 4
    assert "share removed the last 6 of 6 offerings" in result.stderr
    assert "isolation is required" in result.stderr


def test_what_only_capacity_providers_can_run_is_warned_of(relaunch, session, file):
    rewrite(file, "accelerator: {gpu: {memory: 16GiB}}", "accelerator: {gpu: {memory: 16GiB}}\n    disk: 300GiB")
    session.offerings.available = (make_offering(disk_gib=500), own_machine("g5.xlarge", "us-east-1a", 0.2))

    result = relaunch("apply", str(file), "--dry-run")

    assert (
        "resnet: only capacity providers can run it, never a machine of the stack's own: the nearest was "
        "g5.xlarge spot us-east-1a: its disk has 100 GiB; 300 are asked for"
    ) in result.stderr
    assert "bert: only" not in result.stderr
