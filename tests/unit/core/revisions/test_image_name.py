"""Names of images as container runtimes read them."""

import pytest

from relaunch.core.revisions.image_name import ImageName, parse_image_name

DIGEST = f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("python", ("docker.io", "library/python", "", "")),
        ("python:3.11", ("docker.io", "library/python", "3.11", "")),
        ("acme/trainer:v1", ("docker.io", "acme/trainer", "v1", "")),
        ("docker.io/python", ("docker.io", "library/python", "", "")),
        ("index.docker.io/acme/trainer", ("docker.io", "acme/trainer", "", "")),
        ("localhost/trainer", ("localhost", "trainer", "", "")),
        ("localhost:5000/a/b:c", ("localhost:5000", "a/b", "c", "")),
        ("Registry.Example.com/team/train_er:V1", ("registry.example.com", "team/train_er", "V1", "")),
        (f"registry.example.com/a@{DIGEST}", ("registry.example.com", "a", "", DIGEST)),
        (f"registry.example.com:443/a/b:1@{DIGEST}", ("registry.example.com:443", "a/b", "1", DIGEST)),
    ],
)
def test_a_name_has_a_registry_a_repository_and_perhaps_a_tag_and_a_digest(name, parts):
    assert parse_image_name(name) == ImageName(*parts)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "registry.example.com/",
        "registry.example.com/acme/../evil/x",
        "registry.example.com/acme//x",
        "registry.example.com/Acme/x",
        "registry.example.com/acme/x:",
        "registry.example.com/acme/x:a b",
        "registry.example.com/acme/x@sha256:00",
        "registry.example.com/acme/x@",
        "registry.example.com:port/acme/x",
        "registry..example.com/acme/x",
        "-registry.example.com/acme/x",
        "registry.example.com/acme/x.",
        "registry.example.com/" + "a" * 500,
        "a" * 100_000 + "-" * 100_000,
    ],
    ids=range(15),
)
def test_what_runtimes_do_not_pull_is_no_name(name):
    assert parse_image_name(name) is None


def test_a_digest_takes_the_place_of_a_tag():
    name = parse_image_name("acme/trainer:v1")

    assert name is not None
    assert name.at(DIGEST) == f"docker.io/acme/trainer@{DIGEST}"
    assert name.without_tag == "docker.io/acme/trainer"
