"""The CUDA version in the tag of an image, held against a driver."""

import pytest

from relaunch.core.kubernetes.acs_drivers import cuda_notice, cuda_version


@pytest.mark.parametrize(
    ("image", "driver", "least"),
    [
        ("NVIDIA/CUDA:12.2.0-base-Ubuntu20.04", "470.82.01", "525.60"),
        ("registry.example.com/nvidia/cuda:13.0.1-runtime-ubi9", "570.133.20", "580.65"),
        ("nvidia/cuda:11.8-devel", "440.33", "450.80"),
    ],
)
def test_a_driver_that_is_too_old_is_named(image, driver, least):
    assert f"which needs driver {least} or newer; the default is {driver}" in cuda_notice(image, driver, "the default")


@pytest.mark.parametrize(
    ("image", "driver"),
    [
        ("nvidia/cuda:12.2.0-base-ubuntu20.04", "535.161.08"),
        ("nvidia/cuda:12.2.0-base-ubuntu20.04", "525.60.13"),
        ("nvidia/cuda:13.0.0-base-ubuntu24.04", "580.95.05-open"),
        ("nvidia/cuda:12.2.0-base-ubuntu20.04", "1.5.0"),
        ("nvidia/cuda:12.2.0-base-ubuntu20.04", ""),
        ("nvidia/cuda:10.2-base", "440.33"),
        ("acme/trainer:12.2.0-base", "470.82.01"),
        ("acme/barracuda:12.2.0-base", "470.82.01"),
    ],
    ids=["new enough", "just new enough", "open", "another maker", "no driver", "unknown CUDA", "other image", "name"],
)
def test_nothing_is_said_of_what_fits_or_is_not_known(image, driver):
    assert cuda_notice(image, driver, "the default") == ""


def test_the_version_of_an_image_is_in_its_tag():
    assert cuda_version("registry.example.com/nvidia/cuda:13.0.1-runtime-ubi9") == "13.0"
    assert cuda_version("acme/trainer:12.2.0-base") == ""
