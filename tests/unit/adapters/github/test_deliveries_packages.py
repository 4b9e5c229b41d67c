"""Packages, and the images among them, of which one push brings several events."""

import json
from typing import Any

import pytest

from fakes.webhook import load_event
from relaunch.adapters.github.payload_trimming import trim_payload
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.definitions.definition import GithubTrigger
from relaunch.core.triggers.events import Package, list_github_obstacles
from relaunch.core.triggers.matching import IgnoredEvent

PACKAGE = load_event("github.package.published")
TRIGGER = GithubTrigger("acme/vision", "package", packages=("vision-trainer",))
DIGEST = "sha256:aa"


def parse(payload: Any) -> object:
    message = {"source": "github", "event": "package", "delivery": "guid-1", "body_sha256": "ab", "payload": payload}
    (parsed,) = parse_intake_message(json.dumps(message))
    return parsed


def read_package(payload: Any) -> Package:
    event = parse(payload)
    assert isinstance(event, Package)
    assert event == parse(trim_payload(payload))
    return event


def of_version(version: Any) -> Package:
    return read_package({**PACKAGE, "package": {"name": "vision-trainer", "package_version": version}})


@pytest.mark.parametrize(
    ("version", "tag", "is_container"),
    [
        pytest.param(
            {"container_metadata": {"tag": {"name": "v1"}}, "package_url": "ghcr.io/a/b:v2"}, "v1", True, id="tag"
        ),
        pytest.param(
            {"container_metadata": {"tag": {"name": ""}}, "package_url": "ghcr.io/a/b:v2"}, "v2", True, id="url"
        ),
        pytest.param(
            {"container_metadata": {"tag": {"name": "v1"}}, "version": DIGEST}, "v1", True, id="tag-of-a-digest"
        ),
        pytest.param({"container_metadata": {"tag": None}}, "", True, id="null-for-the-tag"),
        pytest.param({"container_metadata": None, "package_url": "localhost:5000/a/b"}, "", False, id="port-is-no-tag"),
        pytest.param({"version": DIGEST, "package_url": "ghcr.io/a/b:"}, "", True, id="untagged"),
        pytest.param({"version": "1.0.0"}, "1.0.0", False, id="version"),
        pytest.param(None, "", False, id="no-version"),
    ],
)
def test_a_package_has_a_tag_or_a_version(version: Any, tag: str, *, is_container: bool) -> None:
    event = of_version(version)

    assert (event.tag, event.is_container) == (tag, is_container)


def test_a_push_of_an_image_with_attestations_starts_one_job() -> None:
    parts = [
        {"id": number, "version": f"sha256:{number}", "container_metadata": {"tag": {"name": "", "digest": DIGEST}}}
        for number in range(3)
    ]
    pushed = [read_package(PACKAGE), *map(of_version, parts)]

    reasons = [list(list_github_obstacles(TRIGGER, each)) for each in pushed]

    assert len({each.identity for each in pushed}) == 4
    assert reasons[0] == []
    untagged = "an image without a tag was published as vision-trainer: a part of one, or what is attested of it"
    assert reasons[1:] == [[untagged]] * 3


@pytest.mark.parametrize("number", [1, 2, 3])
def test_octokits_packages_start_jobs_unless_they_are_images_without_a_tag(number: int) -> None:
    event = read_package(load_event(f"octokit/package.published.{number}"))

    reasons = list(list_github_obstacles(GithubTrigger(event.repository, "package"), event))

    assert (event.tag, event.is_container) == (("", True) if number == 2 else ("1.0.0", False))
    assert bool(reasons) == (number == 2)


def test_a_package_of_an_organisation_starts_nothing() -> None:
    assert isinstance(parse({key: value for key, value in PACKAGE.items() if key != "repository"}), IgnoredEvent)
