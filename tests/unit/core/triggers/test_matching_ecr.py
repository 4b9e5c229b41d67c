from dataclasses import replace

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.definition import ImageTrigger, ImageWait
from relaunch.core.triggers.events import DirectRequest
from relaunch.core.triggers.matching import InvalidInputs
from unit.core.triggers.matched import (
    IMAGE,
    PUSH,
    SHA,
    UPLOAD_TRIGGER,
    facts_of,
    github,
    match_event,
    matched,
    reason_against,
)

OTHER = SHA[::-1]
SIGNATURE = f"sha256-{SHA}{SHA[:24]}.sig"
CONFIGURATION = "application/vnd.oci.image.config.v1+json"
CACHE = "application/vnd.buildkit.cacheconfig.v0"


@pytest.mark.parametrize(
    ("trigger", "tag"),
    [
        pytest.param(ImageTrigger("trainer"), SHA, id="any-image"),
        pytest.param(ImageTrigger("trainer", "{sha}"), SHA, id="image-of-a-commit"),
        pytest.param(ImageTrigger("trainer", "v*"), "v1.2", id="image-tag-pattern"),
        pytest.param(ImageTrigger("trainer", "{short_sha}-gpu"), "4b1d8e6-gpu", id="short-commit"),
        pytest.param(ImageTrigger("trainer", "{sha}.{sha}.{sha}"), f"{SHA}.{OTHER}.{OTHER}", id="commits"),
        pytest.param(ImageTrigger("trainer"), "buildcache", id="of-which-ecr-does-not-say-that-it-is-a-cache"),
        pytest.param(ImageTrigger("trainer", "sha256-*"), SIGNATURE, id="what-a-pattern-names"),
    ],
)
def test_an_image_starts_the_job_whose_trigger_it_fits(trigger, tag):
    assert matched(replace(IMAGE, tag=tag), trigger).trigger is trigger
    assert matched(replace(IMAGE, tag=tag, media_type=CONFIGURATION), trigger).trigger is trigger


@pytest.mark.parametrize(
    ("trigger", "event", "reason"),
    [
        pytest.param(ImageTrigger("other"), IMAGE, "no trigger of resnet", id="other-image"),
        pytest.param(ImageTrigger("trainer"), replace(IMAGE, tag=""), "without a tag", id="part-of-an-image"),
        pytest.param(ImageTrigger("trainer", "v*"), IMAGE, "does not match v*", id="other-image-tag"),
        pytest.param(ImageTrigger("trainer", "{sha}"), replace(IMAGE, tag="latest"), "does not match", id="no-commit"),
        pytest.param(ImageTrigger("trainer"), PUSH, "no trigger of resnet", id="other-source"),
        pytest.param(
            ImageTrigger("trainer"),
            replace(IMAGE, tag=SIGNATURE, media_type=CONFIGURATION),
            f"{SIGNATURE} is what belongs to another image, as its signature: * does not name sha256",
            id="signature",
        ),
        pytest.param(
            ImageTrigger("trainer", "*{sha}*"),
            replace(IMAGE, tag=SIGNATURE),
            "*{sha}* does not name sha256",
            id="signature-with-what-looks-like-a-commit",
        ),
        pytest.param(
            ImageTrigger("trainer"),
            replace(IMAGE, tag="buildcache", media_type=CACHE),
            f"trainer:buildcache is no container image: its configuration is {CACHE}",
            id="build-cache",
        ),
        pytest.param(
            ImageTrigger("trainer", "v*"), replace(IMAGE, tag="v1", media_type=CACHE), "no container image", id="chart"
        ),
    ],
)
def test_an_image_that_does_not_fit_starts_nothing_and_says_why(trigger, event, reason):
    assert reason in reason_against(event, trigger)


@pytest.mark.parametrize(
    ("pattern", "tag", "commit"),
    [
        pytest.param("gpu-{sha}", f"gpu-{SHA}", {"RELAUNCH_GIT_SHA": SHA}, id="image"),
        pytest.param(
            "{sha}.{sha}.{sha}",
            f"{SHA}.{OTHER}.{OTHER}",
            {"RELAUNCH_GIT_SHA": SHA},
            id="image-of-several-commits-is-of-the-first",
        ),
        pytest.param("*-{sha}*", f"x-{OTHER}-{SHA}", {"RELAUNCH_GIT_SHA": SHA}, id="the-last-of-several-places"),
        pytest.param("*{sha}", f"0{SHA}", {"RELAUNCH_GIT_SHA": SHA}, id="the-last-digits-of-many"),
        pytest.param("{sha}-v?", f"{SHA}-v", {"RELAUNCH_GIT_SHA": SHA}, id="a-pattern-after-the-commit"),
        pytest.param("v*", "v7", {}, id="image-of-no-commit"),
    ],
)
def test_the_training_and_people_are_told_of_the_image(pattern, tag, commit):
    image = {"RELAUNCH_IMAGE_REPOSITORY": "trainer", "RELAUNCH_IMAGE_TAG": tag, "RELAUNCH_IMAGE_DIGEST": "sha256:aa"}

    assert facts_of(replace(IMAGE, tag=tag), ImageTrigger("trainer", pattern)) == (
        f"image trainer:{tag} pushed",
        {**image, **commit},
    )


def test_a_pattern_that_could_match_in_countless_ways_takes_no_time():
    pattern = "[0-9a-f]+" * 14 + "{sha}" + "*_" * 6
    tag = "a" * 121 + "_" * 7

    assert "does not match" in reason_against(replace(IMAGE, tag=tag + "x"), ImageTrigger("trainer", pattern))
    assert facts_of(replace(IMAGE, tag=tag), ImageTrigger("trainer", pattern))[1]["RELAUNCH_GIT_SHA"] == "a" * 40


@pytest.mark.parametrize(
    ("trigger", "tag", "commit"),
    [
        pytest.param(ImageTrigger("trainer", "{sha}-gpu"), f"{SHA}-gpu", {"RELAUNCH_GIT_SHA": SHA}, id="of-a-commit"),
        pytest.param(ImageTrigger("trainer"), "v7", {}, id="of-no-commit"),
        pytest.param(
            github("push", wait_for_image=ImageWait("trainer")), SHA, {"RELAUNCH_GIT_SHA": SHA}, id="that-is-waited-for"
        ),
    ],
)
def test_a_request_may_name_an_image_that_a_trigger_watches(trigger, tag, commit):
    request = DirectRequest("api:key:1", "resnet", caller="ci", image_tag=tag)

    decision = matched(request, UPLOAD_TRIGGER, ImageTrigger("other", "w*"), trigger)

    image = {"RELAUNCH_IMAGE_REPOSITORY": "trainer", "RELAUNCH_IMAGE_TAG": tag}
    assert (decision.trigger, decision.image, decision.image_timeout) == (None, ("trainer", tag), None)
    assert decision.facts.summary == f"asked for by ci with image trainer:{tag}"
    assert (decision.facts.environment, decision.facts.caller) == ({**image, **commit}, "ci")


@pytest.mark.parametrize(
    ("triggers", "reason"),
    [
        pytest.param(
            (UPLOAD_TRIGGER, github("push")),
            "no trigger of resnet watches images: its jobs run those of its revision",
            id="no-images",
        ),
        pytest.param(
            (ImageTrigger("trainer", "v*"), ImageTrigger("other", "{sha}")),
            "the image tag 'latest' does not match the triggers of resnet: trainer:v*, other:{sha}",
            id="other-images",
        ),
    ],
)
def test_a_request_for_an_image_that_no_trigger_watches_starts_nothing(triggers, reason):
    request = DirectRequest("api:key:1", "resnet", image_tag="latest")

    assert match_event(make_definition(triggers=triggers), request) == InvalidInputs(reason)
