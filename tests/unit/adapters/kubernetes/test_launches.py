import pytest

from fakes.kubernetes import TASK_NAME, read_job
from relaunch.adapters.kubernetes.api.errors import to_port_error
from relaunch.adapters.kubernetes.api.kubeconfig import KubeconfigError
from relaunch.adapters.kubernetes.api.models import Status, StatusDetails
from relaunch.adapters.kubernetes.labels import REQUEST
from relaunch.adapters.kubernetes.launches import check_limits, outcome_of_error, outcome_of_existing
from relaunch.core.launches.launch import LaunchConflict, LaunchDeferred, LaunchRefused, LaunchUncertain, TaskPlaced
from relaunch.ports import NotGrantedError, PermanentError, TransientError

MIB = 1 << 20


def answered(code, reason, message="said"):
    return to_port_error("creating Job a", code, Status(message=message, reason=reason, details=StatusDetails()), None)


@pytest.mark.parametrize(
    ("error", "kind", "is_about_revision"),
    [
        pytest.param(answered(422, "Invalid", "must be an integer"), LaunchRefused, True, id="invalid"),
        pytest.param(answered(400, "BadRequest", "cannot unmarshal number"), LaunchRefused, True, id="no Job"),
        pytest.param(answered(413, "RequestEntityTooLarge"), LaunchRefused, True, id="too large"),
        pytest.param(
            answered(403, "Forbidden", 'admission webhook "gpushare" denied the request'),
            LaunchRefused,
            True,
            id="by an admission webhook",
        ),
        pytest.param(
            answered(403, "Forbidden", 'User "relaunch" cannot create resource "jobs"'),
            LaunchRefused,
            False,
            id="no Role",
        ),
        pytest.param(answered(401, "Unauthorized"), LaunchRefused, False, id="credentials"),
        pytest.param(
            answered(404, "NotFound", 'namespaces "training" not found'), LaunchRefused, False, id="namespace"
        ),
        pytest.param(PermanentError("no kubeconfig"), LaunchRefused, False, id="not sent"),
        pytest.param(
            answered(403, "Forbidden", "exceeded quota: jobs, requested: count/jobs.batch=1"),
            LaunchDeferred,
            None,
            id="quota",
        ),
        pytest.param(answered(429, "TooManyRequests"), LaunchDeferred, None, id="throttled"),
        pytest.param(answered(409, "Conflict"), LaunchUncertain, None, id="conflict of another kind"),
        pytest.param(answered(500, "InternalError"), LaunchUncertain, None, id="server error"),
        pytest.param(answered(504, "Timeout"), LaunchUncertain, None, id="time-out of the server"),
        pytest.param(TransientError("no answer"), LaunchUncertain, None, id="no answer"),
    ],
)
def test_every_answer_is_an_outcome(error, kind, is_about_revision):
    outcome = outcome_of_error(error)

    assert type(outcome) is kind
    assert str(error) == outcome.reason
    assert getattr(outcome, "is_about_revision", None) == is_about_revision


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(answered(401, "Unauthorized"), id="an expired token"),
        pytest.param(
            answered(403, "Forbidden", 'jobs.batch is forbidden: User "relaunch" cannot create resource "jobs"'),
            id="a missing Role",
        ),
        pytest.param(answered(404, "NotFound", 'namespaces "training" not found'), id="a missing namespace"),
        pytest.param(
            answered(
                403, "Forbidden", "unable to create new content in namespace training because it is being terminated"
            ),
            id="a namespace that ends",
        ),
        pytest.param(KubeconfigError("it is not valid YAML"), id="a broken kubeconfig"),
        pytest.param(NotGrantedError("assuming the RAM role: AuthenticationFail.OIDCToken.Expired"), id="a RAM role"),
    ],
)
def test_what_somebody_can_grant_or_mend_may_heal(error):
    outcome = outcome_of_error(error)

    assert outcome == LaunchRefused(str(error), may_heal=True)


@pytest.mark.parametrize(
    "error",
    [
        answered(422, "Invalid", "must be an integer"),
        answered(400, "BadRequest", "cannot unmarshal number"),
        answered(413, "RequestEntityTooLarge"),
        answered(403, "Forbidden", 'admission webhook "gpushare" denied the request'),
        answered(
            403, "Forbidden", 'pods "a" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi'
        ),
        answered(403, "Forbidden", 'jobs "a" is forbidden: violates PodSecurity "restricted:latest"'),
        PermanentError("the manifest has 2000000 bytes"),
    ],
)
def test_what_the_manifest_is_at_fault_for_does_not_heal(error):
    outcome = outcome_of_error(error)

    assert isinstance(outcome, LaunchRefused)
    assert not outcome.may_heal


def test_the_job_of_the_same_request_is_the_task():
    assert outcome_of_existing(TASK_NAME, read_job(annotations={REQUEST: "a1"}), "a1") == TaskPlaced(TASK_NAME)


@pytest.mark.parametrize("annotations", [{REQUEST: "b2"}, {}])
def test_another_job_of_this_name_is_a_conflict(annotations):
    assert outcome_of_existing(TASK_NAME, read_job(annotations=annotations), "a1") == LaunchConflict((TASK_NAME,))


def test_a_job_that_was_there_and_is_gone_may_be_created_again():
    assert isinstance(outcome_of_existing(TASK_NAME, None, "a1"), LaunchUncertain)


def manifest(**environment):
    env = [{"name": name, "value": value} for name, value in environment.items()]
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": env}]}}}}


def test_limits():
    assert check_limits(manifest(A="x" * 131_069)) == ()
    assert check_limits(manifest(A="x" * 131_070)) == ("the variable A has 131072 bytes, Linux takes 131072",)
    too_much = {f"A{number}": "x" * 100_000 for number in range(16)}
    [violation] = check_limits(manifest(**too_much))
    assert "the manifest has 1600" in violation
