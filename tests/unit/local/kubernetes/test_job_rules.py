"""What the server says of Jobs: the recorded answers of real ones (1.36.2, and 1.20.2 where it differs)."""

from copy import deepcopy
from typing import Any

import pytest

from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.job_rules import admit_change, admit_job, with_requests
from tests.unit.local.kubernetes.conftest import manifest

LIMITS = "spec.template.spec.containers[0].resources.limits"
MEMORY, COMPUTE = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"


def resources(limits: dict[str, Any], requests: dict[str, Any] | None = None) -> dict[str, Any]:
    job = manifest(limits=limits)
    if requests is not None:
        job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = requests
    return job


def changed(*path: str | int, value: object) -> dict[str, Any]:
    job = deepcopy(manifest())
    part: Any = job
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return job


POD = ("spec", "template", "spec")
REFUSED = [
    (resources({MEMORY: 0.5}), 422, f'{LIMITS}[{MEMORY}]: Invalid value: "500m": must be an integer'),
    (resources({"nvidia.com/gpu": "0.5"}), 422, 'Invalid value: "500m": must be an integer'),
    (resources({COMPUTE: -5}), 422, f'{LIMITS}[{COMPUTE}]: Invalid value: "-5": must be greater than or equal to 0'),
    (resources({}, {MEMORY: 2}), 422, f"{LIMITS}: Required value: Limit must be set for non overcommitable resources"),
    (resources({MEMORY: 3}, {MEMORY: 2}), 422, f'requests: Invalid value: "2": must be equal to {MEMORY} limit of 3'),
    (resources({"gpu-mem": 2}), 422, 'Invalid value: "gpu-mem": must be a standard resource type or fully qualified'),
    (resources({MEMORY: "two"}), 400, "quantities must match the regular expression"),
    (changed("spec", "template", "metadata", "labels", value={"n": 2}), 400, "cannot unmarshal number into Go struct"),
    (changed("metadata", "labels", value={"app": "x" * 64}), 422, "must be no more than 63 bytes"),
    (changed("metadata", "labels", value={"gpu": "Tesla T4"}), 422, "a valid label must be an empty string or consist"),
    (changed(*POD, "restartPolicy", value="Always"), 422, 'Required value: valid values: "OnFailure", "Never"'),
    (changed(*POD, "restartPolicy", value=None), 422, 'Required value: valid values: "OnFailure", "Never"'),
    (changed("metadata", "name", value="a" * 64), 422, "spec.template.labels: Invalid value"),
    (changed("metadata", "name", value="train_1"), 422, "a lowercase RFC 1123 subdomain must consist of lower case"),
    (changed("metadata", "name", value="Train"), 422, 'Job.batch "Train" is invalid: metadata.name: Invalid value'),
    (changed(*POD, "containers", value=[]), 422, "spec.template.spec.containers: Required value"),
    (changed(*POD, "containers", 0, "image", value=""), 422, "containers[0].image: Required value"),
    (changed(*POD, "containers", 0, "env", value=[{"name": "A", "value": 1}]), 400, "EnvVar.spec.template.spec"),
    (changed("metadata", "annotations", value={"a": "x" * (256 << 10)}), 422, "may not be more than 262144 bytes"),
    (changed("kind", value="CronJob"), 400, 'CronJob in version "v1" cannot be handled as a Job'),
    (changed("metadata", "name", value=""), 422, "metadata.name: Required value: name or generateName is required"),
    (changed("metadata", "labels", value={"a b": "c"}), 422, 'metadata.labels: Invalid value: "a b": name part must'),
    (changed("spec", "backoffLimit", value=-1), 422, "spec.backoffLimit: Invalid value: -1: must be greater than or"),
    (resources({"cpu": "1"}, {"cpu": "2"}), 422, 'requests: Invalid value: "2": must be less than or equal to cpu'),
]


@pytest.mark.parametrize(("job", "code", "message"), REFUSED)
def test_what_a_real_server_refuses(job: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        admit_job(job, 36, is_strict=False)

    assert caught.value.code == code
    assert message in caught.value.message


@pytest.mark.parametrize(
    "job", [resources({COMPUTE: 7}), resources({MEMORY: "2Gi"}), resources({MEMORY: 2, COMPUTE: 30}), resources({})]
)
def test_what_a_real_server_takes_though_ack_does_not(job: dict[str, Any]) -> None:
    admit_job(job, 36, is_strict=False)


def test_a_limit_is_a_request_of_the_pod_too_and_quantities_are_stored_as_text() -> None:
    job, _ = admit_job(resources({MEMORY: 2, "cpu": "0.5", "memory": "1Gi"}, {"cpu": "250m"}), 36, is_strict=False)

    pod = job["spec"]["template"]["spec"]
    stored, of_pod = (each["containers"][0]["resources"] for each in (pod, with_requests(pod)))
    assert stored["limits"] == of_pod["limits"] == {MEMORY: "2", "cpu": "500m", "memory": "1Gi"}
    assert stored["requests"] == {"cpu": "250m"}
    assert of_pod["requests"] == {MEMORY: "2", "cpu": "250m", "memory": "1Gi"}


NEWER = {"suspend": False, "ttlSecondsAfterFinished": 9, "podFailurePolicy": {"rules": []}, "managedBy": "x"}


@pytest.mark.parametrize(
    ("minor", "kept"), [(36, set(NEWER)), (25, {"suspend", "ttlSecondsAfterFinished"}), (20, set())]
)
def test_an_old_server_drops_what_it_does_not_know_and_says_nothing(minor: int, kept: set[str]) -> None:
    job, warnings = admit_job(manifest(**NEWER), minor, is_strict=False)

    assert set(job["spec"]) & set(NEWER) == kept
    assert warnings == []
    assert job["spec"]["backoffLimit"] == 0


def test_an_unknown_field_is_a_warning_or_with_strict_validation_an_error() -> None:
    job, warnings = admit_job(manifest(bogus=1), 36, is_strict=False)

    assert "bogus" not in job["spec"]
    assert warnings == ['unknown field "spec.bogus"']
    with pytest.raises(ApiError, match=r'strict decoding error: unknown field "spec\.bogus"'):
        admit_job(manifest(bogus=1), 36, is_strict=True)
    assert admit_job(manifest(bogus=1), 20, is_strict=True)[1] == []


@pytest.mark.parametrize(("minor", "is_known"), [(27, False), (28, True)])
def test_a_field_of_newer_servers_is_refused_where_validation_is_strict(minor, is_known):
    def admit() -> None:
        admit_job(manifest(podReplacementPolicy="Failed"), minor, is_strict=True)

    if is_known:
        admit()
        return
    with pytest.raises(ApiError, match=r'strict decoding error: unknown field "spec.podReplacementPolicy"'):
        admit()


def test_what_cannot_be_changed_is_told_with_its_field_for_kubectl() -> None:
    stored, _ = admit_job(manifest(), 36, is_strict=True)
    changed = deepcopy(stored)
    changed["spec"]["completions"] = 2
    with pytest.raises(ApiError) as caught:
        admit_change(changed, stored, 36)

    assert caught.value.to_status()["details"] == {
        "name": "cuda-sample",
        "group": "batch",
        "kind": "Job",
        "causes": [
            {
                "reason": "FieldValueInvalid",
                "message": "Invalid value: 2: field is immutable",
                "field": "spec.completions",
            }
        ],
    }
