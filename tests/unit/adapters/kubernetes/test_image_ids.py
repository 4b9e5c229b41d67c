"""The forms of `imageID`: which of them can be pulled."""

import pytest

from relaunch.adapters.kubernetes.image_ids import pullable_image

DIGEST = f"sha256:{'0123456789abcdef' * 4}"


@pytest.mark.parametrize(
    ("image_id", "image"),
    [
        (f"registry.example.com:5000/team/trainer@{DIGEST}", f"registry.example.com:5000/team/trainer@{DIGEST}"),
        (f"docker-pullable://acme/trainer@{DIGEST}", f"acme/trainer@{DIGEST}"),
        (f"docker://{DIGEST}", ""),
        (DIGEST, ""),
        (f"docker://acme/trainer@{DIGEST}", ""),
        (f"docker-pullable://docker-pullable://acme/trainer@{DIGEST}", ""),
        ("acme/trainer:v1", ""),
        ("acme/trainer@sha256:0123", ""),
        (f"acme/trainer@{DIGEST}0", ""),
        (f"a@b@{DIGEST}", ""),
        (f"acme/trainer @{DIGEST}", ""),
        (f"@{DIGEST}", ""),
        ("", ""),
        ("a" * 100_000, ""),
    ],
    ids=range(14),
)
def test_only_a_repository_with_a_digest_can_be_pulled(image_id, image):
    assert pullable_image(image_id) == image
