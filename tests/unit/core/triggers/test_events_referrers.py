import pytest

from relaunch.core.triggers.events import is_image, is_referrer_tag

HEX = "5d0c41f2b6a87e9301d7c8be4f2a6950e1b3d4c7a8f06925be17d3409c6fa812"


@pytest.mark.parametrize("ending", ["", ".sig", ".att", ".sbom", ".a.b"])
def test_what_is_named_by_the_digest_of_an_image_belongs_to_it(ending):
    assert is_referrer_tag(f"sha256-{HEX}{ending}")


@pytest.mark.parametrize(
    "tag",
    [
        *(f"sha256-{HEX[1:]}", f"sha256-{HEX}0", f"sha256-{HEX.upper()}", f"sha256-{HEX}.", f"sha256-{HEX}-gpu"),
        *(f"x-sha256-{HEX}", f"sha256{HEX}", HEX, f"sha1-{HEX}", "sha256-gpu", "latest", ""),
    ],
)
def test_other_tags_are_those_of_images(tag):
    assert not is_referrer_tag(tag)


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("", True),
        ("application/vnd.oci.image.config.v1+json", True),
        ("application/vnd.docker.container.image.v1+json", True),
        ("application/vnd.buildkit.cacheconfig.v0", False),
        ("application/vnd.cncf.helm.config.v1+json", False),
        ("application/vnd.oci.empty.v1+json", False),
        ("text/sbom+json", False),
    ],
)
def test_only_the_configuration_of_an_image_is_run(media_type, expected):
    assert is_image(media_type) is expected
