"""The digest that the first pod of a job reports, and who gets it."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition, make_observation, make_running_job
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.rules import kubernetes_revision
from relaunch.core.launches.launch import ContainerObservation
from relaunch.core.launches.launch_plan import pod_image
from relaunch.core.lifecycle.seen_images import with_seen_image

FIRST = f"sha256:{'1' * 64}"
SECOND = f"sha256:{'2' * 64}"
REPOSITORY = "registry.example.com/team/trainer"


def job_with(image=f"{REPOSITORY}:v1", **fields):
    definition = make_definition(
        target=Target.ACK,
        kubernetes=KubernetesWorkload(image),
        accelerator=AcceleratorRequirement(gpu=GpuRequirement()),
    )
    return replace(make_running_job(definition=definition, revision=kubernetes_revision(definition)), **fields)


def seen_with(image, container="main"):
    return replace(make_observation("RUNNING"), containers={container: ContainerObservation(image=image)})


@pytest.mark.parametrize(
    ("asked", "reported", "image"),
    [
        (f"{REPOSITORY}:v1", f"{REPOSITORY}@{FIRST}", f"{REPOSITORY}@{FIRST}"),
        (REPOSITORY, f"{REPOSITORY}@{FIRST}", f"{REPOSITORY}@{FIRST}"),
        ("acme/trainer:v1", f"docker.io/acme/trainer@{FIRST}", f"docker.io/acme/trainer@{FIRST}"),
        ("python:3.11", f"python@{FIRST}", f"docker.io/library/python@{FIRST}"),
    ],
)
def test_later_attempts_run_the_digest_that_was_reported(asked, reported, image):
    assert pod_image(with_seen_image(job_with(asked), seen_with(reported))) == image


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        (f"{REPOSITORY}:v1", ""),
        (f"{REPOSITORY}:v1", f"{REPOSITORY}:v1"),
        (f"{REPOSITORY}:v1", f"mirror.example.com/team/trainer@{FIRST}"),
        (f"{REPOSITORY}:v1", f"{REPOSITORY}-2@{FIRST}"),
        (f"{REPOSITORY}@{SECOND}", f"{REPOSITORY}@{FIRST}"),
        ("no/../image", f"{REPOSITORY}@{FIRST}"),
    ],
    ids=["not yet", "no digest", "another registry", "another repository", "by digest", "no name"],
)
def test_the_image_stays_as_it_was_asked_for(asked, reported):
    job = job_with(asked)

    assert with_seen_image(job, seen_with(reported)) is job


def test_the_first_digest_stays():
    job = with_seen_image(job_with(), seen_with(f"{REPOSITORY}@{FIRST}"))

    assert with_seen_image(job, seen_with(f"{REPOSITORY}@{SECOND}")) is job


def test_the_image_of_another_container_is_none_of_the_job():
    job = job_with()

    assert with_seen_image(job, seen_with(f"{REPOSITORY}@{FIRST}", "istio-proxy")) is job
