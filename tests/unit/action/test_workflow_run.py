import pytest

from fakes.action_services import runner_environment
from relaunch_action.errors import ActionError
from relaunch_action.workflow_run import read_workflow_run


def test_a_rerun_has_the_keys_of_the_runs_before_it_and_one_of_its_own() -> None:
    first = read_workflow_run(runner_environment())
    third = read_workflow_run(runner_environment(GITHUB_RUN_ATTEMPT="3"))
    keys = third.keys("resnet", {"a": "1"})

    assert len(set(keys)) == 3
    assert keys[:1] == first.keys("resnet", {"a": "1"})
    assert all(key.startswith("github/acme/vision/1658821493/") for key in keys)


def test_jobs_of_a_matrix_have_keys_of_their_own() -> None:
    run = read_workflow_run(runner_environment())
    other_job = read_workflow_run(runner_environment(GITHUB_JOB="evaluate"))
    other_run = read_workflow_run(runner_environment(GITHUB_RUN_ID="2"))
    keys = [
        *(
            run.keys("resnet", {})
            + run.keys("bert", {})
            + run.keys("resnet", {"a": "1"})
            + run.keys("resnet", {"a": "2"})
            + run.keys("resnet", {}, "4b1d8e6")
        ),
        *(other_job.keys("resnet", {}) + other_run.keys("resnet", {})),
    ]

    assert len(set(keys)) == len(keys) == 7
    assert run.keys("resnet", {"a": "1", "b": "2"}) == run.keys("resnet", {"b": "2", "a": "1"})


def test_a_key_of_the_longest_names_is_one_that_job_api_takes() -> None:
    run = read_workflow_run(runner_environment(GITHUB_REPOSITORY=f"{'o' * 39}/{'r' * 100}", GITHUB_RUN_ATTEMPT="99"))

    assert max(map(len, run.keys("d" * 48, {}))) <= 200
    assert len(run.session_name) <= 64


def test_its_page_and_the_name_of_its_sessions_tell_whose_they_are() -> None:
    run = read_workflow_run(runner_environment(GITHUB_RUN_ATTEMPT="2"))

    assert run.url == "https://github.com/acme/vision/actions/runs/1658821493"
    assert run.session_name == "relaunch-1658821493-2"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"GITHUB_RUN_ID": ""}, "GITHUB_RUN_ID"),
        ({"GITHUB_RUN_ATTEMPT": "0"}, "GITHUB_RUN_ATTEMPT"),
        ({"GITHUB_RUN_ATTEMPT": "²"}, "GITHUB_RUN_ATTEMPT"),
        ({"GITHUB_REPOSITORY": "", "GITHUB_JOB": ""}, "GITHUB_REPOSITORY, GITHUB_JOB"),
    ],
)
def test_outside_a_workflow_it_says_so(changes: dict[str, str], word: str) -> None:
    with pytest.raises(ActionError) as refused:
        read_workflow_run(runner_environment(**changes))

    assert f"{word} of the runner is missing: run the action in a workflow" in str(refused.value)
