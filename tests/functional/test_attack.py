"""`make attack`: nothing misbehaves, and what does is found."""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from relaunch.adapters import checkpoint_manifest
from relaunch.adapters.aws import checkpoints
from relaunch.adapters.github import signature, webhook_request
from relaunch.adapters.input_patterns import Re2Patterns
from relaunch.adapters.kubernetes import manifest
from relaunch.adapters.kubernetes.api import client, kubeconfig, models
from relaunch.core.kubernetes import grant_problems
from relaunch.core.lifecycle import seen_images
from relaunch.core.revisions import revision
from relaunch.core.revisions.image_name import ImageName, parse_image_name
from relaunch.core.triggers import events
from relaunch.entrypoints import job_api
from relaunch.entrypoints.consumers import CONSUMERS
from relaunch.usecases import submit_job
from relaunch_cli.dashboard import application, rendering
from relaunch_cli.dashboard.guard import Guard
from relaunch_cli.repository_setup import file_changes, git_repository
from relaunch_local.attack import (
    attempts,
    cluster_answers,
    kubeconfigs,
    messages,
    patterns,
    pod_definitions,
    roles,
    terminal,
)
from relaunch_local.attack.__main__ import SURFACES, main
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.simulation.aws.template import read_stack
from relaunch_local.templates.deployed import DeployedStacks

# It opens the emulator: tests/real and tests/browser attack that.
COUNT = 16
_ENVIRONMENT = rendering._environment()
IN_PROCESS = sorted(set(SURFACES) - {"web pages and the local world"})


def misbehaving(surface: str) -> list[str]:
    found = list(SURFACES[surface](random.Random("test"), COUNT))  # noqa: S311 - not a secret

    assert len(found) >= COUNT
    return [f"{each.what}: {each.misbehaviour}" for each in found if each.misbehaviour is not None]


@pytest.mark.parametrize("surface", IN_PROCESS)
def test_nothing_misbehaves(monkeypatch: pytest.MonkeyPatch, surface: str) -> None:
    # However slow the machine is; what takes exponential time takes more.
    monkeypatch.setattr(attempts, "SECONDS", 60.0)

    assert misbehaving(surface) == []


def test_every_queue_that_a_function_consumes_is_attacked_however_few_attempts_are_drawn() -> None:
    consuming = {name for name, function in read_stack().functions.items() if function.sources}
    attacked = [each.what for each in messages.queue_messages(random.Random("test"), 1)]  # noqa: S311 - not a secret

    # The simulated stack is without notices, as a stack is by default.
    assert set(CONSUMERS) == consuming | {"send_notices"}
    # submit_job has a second queue, to which topics deliver.
    assert set(messages.HANDLERS) == {*CONSUMERS.values(), "sns"}
    for queue in messages.HANDLERS:
        assert any(f"sqs.{queue}." in what and f" to {queue}: " in what for what in attacked), queue


def always(value: object) -> Callable[..., object]:
    return lambda *_arguments, **_options: value


def match_by_backtracking(_self: object, pattern: str, value: str) -> bool:
    return re.fullmatch(pattern, value) is not None


def find_defect_carelessly(manifest: bytes, prefix: str, sizes: Mapping[str, int]) -> str:
    try:
        objects = json.loads(manifest)["objects"]
        return "" if all(sizes.get(prefix + each["key"]) == int(each["size"]) for each in objects) else "incomplete"
    except (ValueError, KeyError, TypeError):
        return "invalid"


def read_to_the_end(self: checkpoints.S3Checkpoints, bucket: str, key: str) -> bytes:
    return self._client.get_object(Bucket=bucket, Key=key)["Body"].read()


@pytest.mark.parametrize(
    ("surface", "place", "name", "weakness"),
    [
        ("forged signatures", signature, "is_signed_by", always(value=True)),
        ("forged signatures", signature.SecretRing, "has_signed", always(value=True)),
        ("changed bodies", signature.SecretRing, "has_signed", always(value=True)),
        ("JSON bombs", webhook_request, "_read_payload", lambda request: json.loads(request.body)),
        ("secrets of other repositories", webhook_request, "_find_scope_refusal", always("")),
        ("replayed deliveries", submit_job, "find_dispatch_obstacle", always("")),
        ("origins of workflow_run", events, "_list_workflow_run_obstacles", always(())),
        ("patterns", Re2Patterns, "matches", match_by_backtracking),
        ("patterns", patterns, "matches_filters", lambda value, _filters: re.fullmatch("(_|_)+x", value)),
        ("roles", roles, "deployed", lambda name: DeployedStacks(name, {}, f"relaunch-{name}-")),
        ("foreign task definitions", revision, "_role_problem", always("")),
        ("keys and jobs of other callers", job_api, "is_own", always(value=True)),
        ("manifests of checkpoints", checkpoints, "find_defect", always("")),
        ("manifests of checkpoints", checkpoints, "find_defect", find_defect_carelessly),
        ("manifests of checkpoints", checkpoints.S3Checkpoints, "_read", read_to_the_end),
        ("manifests of checkpoints", checkpoint_manifest, "_quote", str),
        ("keys and jobs of other callers", submit_job, "is_listed", always(value=True)),
        ("command files", file_changes, "_place_of", lambda root, path: (root / path).resolve()),
        ("command files", git_repository, "GITHUB_REPOSITORY_PATTERN", ".*"),
        ("control sequences", terminal, "escape_json", lambda text: text),
        ("the dashboard and other pages", Guard, "_check_host", always(None)),
        ("the dashboard and other pages", Guard, "_names_other_origin", always(value=False)),
        ("the dashboard and other pages", Guard, "_is_own_form", always(value=True)),
        ("values on the dashboard", rendering, "_environment", always(_ENVIRONMENT.overlay(autoescape=False))),
        ("values on the dashboard", rendering, "_environment", always(_ENVIRONMENT.overlay(finalize=str))),
        ("values on the dashboard", application, "log_lines", lambda text: [text]),
    ],
)
def test_a_weakness_is_found(
    monkeypatch: pytest.MonkeyPatch, surface: str, place: object, name: str, weakness: object
) -> None:
    if surface == "patterns":
        monkeypatch.setattr(attempts, "SECONDS", 0.1)
    monkeypatch.setattr(place, name, weakness)

    assert misbehaving(surface)


def of_another_repository(name: str) -> ImageName | None:
    parsed = parse_image_name(name)
    return parsed and replace(parsed, repository="other/image")


def begins_with(name: str, pattern: str) -> bool:
    return name.startswith(pattern.rstrip("*"))


@pytest.mark.parametrize(
    ("part", "place", "name", "weakness", "what"),
    [
        (kubeconfigs.kubeconfigs, kubeconfig, "_refuse", always(None), "users with exec"),
        (kubeconfigs.kubeconfigs, kubeconfig, "read_plain", lambda text, _limit: yaml.safe_load(text), "merge keys"),
        (cluster_answers.cluster_answers, models, "_is_plausible", always(value=True), ": describe with"),
        (cluster_answers.cluster_answers, seen_images, "parse_image_name", of_another_repository, ": describe with"),
        (
            pod_definitions.pod_definitions,
            grant_problems,
            "_has_image",
            always(value=True),
            "the image evil.example/x:1",
        ),
        (pod_definitions.pod_definitions, grant_problems, "_matches", begins_with, "the account trainer-2"),
        (pod_definitions.pod_definitions, manifest, "_container_security_context", always({}), '"kubernetes"'),
    ],
)
def test_a_weakness_towards_clusters_is_found(
    monkeypatch: pytest.MonkeyPatch,
    part: Callable[[random.Random, int], Iterator[Attempt]],
    place: object,
    name: str,
    weakness: object,
    what: str,
) -> None:
    monkeypatch.setattr(client, "_MAX_PAGES", 20)
    monkeypatch.setattr(attempts, "SECONDS", 0.3 if name == "read_plain" else 30.0)
    monkeypatch.setattr(place, name, weakness)

    drawn = part(random.Random("test"), 3_000)  # noqa: S311 - not a secret

    assert what in next(each.what for each in drawn if each.misbehaviour is not None)


def test_what_takes_too_long_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "SECONDS", 0.05)

    found = attempt("a pattern", lambda: str(re.fullmatch("(a+)+", "a" * 60 + "!")))

    assert found.misbehaviour == "took more than 0.05 s of processor time"


def test_the_command_sends_the_files_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "payloads").mkdir()
    (tmp_path / "payloads" / "push.json").write_bytes(b'{"ref": "\\ud800", "repository": {"full_name": []}}')
    (tmp_path / "payloads" / "noise").write_bytes(bytes(range(256)))
    words = ["--attempts", "9", "--only", "forged signatures", "--json", "--corpus"]

    assert main([*words, str(tmp_path)]) == 0

    signatures, corpus = json.loads(capsys.readouterr().out)["surfaces"]
    assert (signatures["tried"], signatures["misbehaved"]) == (9, [])
    assert (corpus["surface"], corpus["misbehaved"]) == ("corpus", [])
    assert corpus["tried"] > 30
    with pytest.raises(SystemExit) as refused:
        main([*words, str(tmp_path / "none")])
    assert refused.value.code == 2


def test_the_command_fails_where_something_misbehaves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(SURFACES, "patterns", lambda _dice, _attempts: iter([Attempt("a pattern", "it came through")]))

    assert main(["--only", "patterns"]) == 1
    assert "a pattern\n  it came through" in capsys.readouterr().out
