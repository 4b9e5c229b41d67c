from datetime import UTC, datetime

import pytest

from fakes.builders import INSTANCE_ID, container_instance_arn, task_id
from fakes.scripted_aws import fault, throttle, time_out
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import TaskPhase
from relaunch.ports import NotYetError, PermanentError, TransientError

MACHINE = container_instance_arn()
FIRST = AttemptKey("resnet", 1)


def running(number: int, **members: object) -> dict[str, object]:
    return {
        "taskArn": task_id(number),
        "lastStatus": "RUNNING",
        "desiredStatus": "RUNNING",
        "startedBy": "resnet/1",
        "version": 4,
        **members,
    }


# stop


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        pytest.param("spot interruption warning", "spot interruption warning", id="whole"),
        pytest.param("x" * 300, "x" * 255, id="short enough"),
    ],
)
def test_stop_gives_the_reason(ecs, target, given, sent):
    ecs.answer("StopTask", task=running(1))

    target.stop(task_id(1), given)

    assert ecs.sent("StopTask") == [{"cluster": "relaunch", "task": task_id(1), "reason": sent}]


@pytest.mark.parametrize("code", ["InvalidParameterException", "ClientException"])
def test_stopping_a_task_that_ecs_forgot_is_fine(ecs, target, code):
    ecs.refuse("StopTask", code, "The referenced task was not found.")

    target.stop(task_id(1), "cancelled")

    assert len(ecs.sent("StopTask")) == 1


@pytest.mark.parametrize("trouble", [throttle, time_out, fault])
def test_stop_that_may_not_have_arrived_is_to_be_repeated(ecs, target, trouble):
    trouble(ecs, "StopTask")
    ecs.answer("StopTask", task=running(1))

    with pytest.raises(TransientError, match="stopping task"):
        target.stop(task_id(1), "cancelled")
    target.stop(task_id(1), "cancelled")

    first, second = ecs.sent("StopTask")
    assert first == second


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("ClusterNotFoundException", "Cluster not found."),
        ("AccessDeniedException", "not authorized to perform: ecs:StopTask"),
        ("InvalidParameterException", "taskId length should be one of [32,36]"),
    ],
)
def test_stop_that_can_never_work_is_a_permanent_error(ecs, target, code, message):
    ecs.refuse("StopTask", code, message)

    with pytest.raises(PermanentError, match="stopping task"):
        target.stop(task_id(1), "cancelled")


# describe


def test_describe_tells_known_tasks_from_unknown_ones(ecs, target):
    stopped_at = datetime(2026, 11, 3, 12, 41, 12, 220000, tzinfo=UTC)
    ecs.answer(
        "DescribeTasks",
        tasks=[running(1, stoppedAt=stopped_at, containers=[{"name": "main", "exitCode": 0}, {"name": "log"}])],
        failures=[{"arn": task_id(2), "reason": "MISSING"}],
    )

    observed = target.describe([task_id(1), task_id(2)])

    assert list(observed) == [task_id(1), task_id(2)]
    assert observed[task_id(2)] is None
    task = observed[task_id(1)]
    assert task is not None
    assert (task.owner, task.version, task.stopped_at) == (FIRST, 4, stopped_at)
    assert {name: each.exit_code for name, each in task.containers.items()} == {"main": 0, "log": None}


def test_describe_asks_for_a_hundred_tasks_at_a_time(ecs, target):
    arns = [task_id(number) for number in range(201)]
    for start in (0, 100, 200):
        ecs.answer("DescribeTasks", tasks=[running(n) for n in range(start, min(start + 100, 201))], failures=[])

    observed = target.describe([*arns, *arns])

    assert [len(sent["tasks"]) for sent in ecs.sent("DescribeTasks")] == [100, 100, 1]
    assert list(observed) == arns


def test_describe_of_nothing_calls_nobody(ecs, target):
    assert target.describe([]) == {}
    assert ecs.requests == []


def test_a_task_that_was_left_in_another_cluster_does_not_hide_those_of_this_one(ecs, target):
    """ "Identifier is for cluster other. Your cluster is relaunch" would be the answer for all."""
    left = task_id(2).replace("relaunch/", "other/")
    old = "arn:aws:ecs:us-east-1:111122223333:task/0123"
    ecs.answer("DescribeTasks", tasks=[running(1)], failures=[{"arn": old, "reason": "MISSING"}])

    assert list(target.describe([left, task_id(1), old])) == [task_id(1), old]
    assert ecs.sent("DescribeTasks")[0]["tasks"] == [task_id(1), old]
    with pytest.raises(PermanentError, match="in another cluster than relaunch"):
        target.describe([left])


@pytest.mark.parametrize(
    ("failures", "said"),
    [([], "said nothing of"), ([{"arn": task_id(1), "reason": "UNAVAILABLE"}], "UNAVAILABLE")],
    ids=["silence", "an unknown failure"],
)
def test_what_says_nothing_of_a_task_is_not_taken_for_its_end(ecs, target, failures, said):
    ecs.answer("DescribeTasks", tasks=[], failures=failures)

    with pytest.raises(TransientError, match=said):
        target.describe([task_id(1)])


@pytest.mark.parametrize("trouble", [throttle, time_out, fault])
def test_describe_that_fails_for_now_is_a_transient_error(ecs, target, trouble):
    trouble(ecs, "DescribeTasks")

    with pytest.raises(TransientError, match="describing 1 tasks"):
        target.describe([task_id(1)])


# find_tasks_of


def test_started_by_is_the_only_filter_and_every_page_is_read(ecs, target):
    ecs.answer("ListTasks", taskArns=[task_id(1)], nextToken="more")
    ecs.answer("ListTasks", taskArns=[task_id(2)])
    ecs.answer("ListTasks", taskArns=[task_id(3)])
    ecs.answer("DescribeTasks", tasks=[running(1), running(2), running(3)], failures=[])

    found = target.find_tasks_of(FIRST)

    assert [task.task_id for task in found] == [task_id(1), task_id(2), task_id(3)]
    base = {"cluster": "relaunch", "startedBy": "resnet/1"}
    assert ecs.sent("ListTasks") == [
        {**base, "desiredStatus": "RUNNING"},
        {**base, "desiredStatus": "RUNNING", "nextToken": "more"},
        {**base, "desiredStatus": "STOPPED"},
    ]


def test_task_that_stops_between_the_two_lists_is_found_once(ecs, target):
    ecs.answer("ListTasks", taskArns=[task_id(1)])
    ecs.answer("ListTasks", taskArns=[task_id(1)])
    ecs.answer("DescribeTasks", tasks=[running(1, desiredStatus="STOPPED")], failures=[])

    assert [task.phase for task in target.find_tasks_of(FIRST)] == [TaskPhase.STOPPING]


def test_listed_task_that_is_not_described_yet_is_not_taken_for_gone_and_looked_for_again_soon(ecs, target):
    ecs.answer("ListTasks", taskArns=[])
    ecs.answer("ListTasks", taskArns=[task_id(1)])
    ecs.answer("DescribeTasks", tasks=[], failures=[{"arn": task_id(1), "reason": "MISSING"}])

    with pytest.raises(NotYetError, match="MISSING") as early:
        target.find_tasks_of(FIRST)
    assert early.value.seconds == 30


def test_nothing_listed_is_nothing_described(ecs, target):
    ecs.answer("ListTasks", taskArns=[])
    ecs.answer("ListTasks", taskArns=[])

    assert target.find_tasks_of(FIRST) == []


@pytest.mark.parametrize("trouble", [throttle, time_out, fault])
def test_half_a_list_is_no_list(ecs, target, trouble):
    ecs.answer("ListTasks", taskArns=[task_id(1)])
    trouble(ecs, "ListTasks")

    with pytest.raises(TransientError, match="listing STOPPED tasks of resnet/1"):
        target.find_tasks_of(FIRST)


# list_tasks, list_nodes


def test_the_whole_cluster_is_listed_by_pages_and_described_a_page_at_a_time(ecs, target):
    ecs.answer("ListTasks", taskArns=[task_id(1), task_id(2)], nextToken="2")
    ecs.answer("ListTasks", taskArns=[task_id(3)])
    ecs.answer("DescribeTasks", tasks=[running(1)], failures=[{"arn": task_id(2), "reason": "MISSING"}])
    ecs.answer("DescribeTasks", tasks=[running(3)])

    pages = [[task.task_id for task in page] for page in target.list_tasks()]

    assert pages == [[task_id(1)], [task_id(3)]]
    assert ecs.sent("ListTasks") == [
        {"cluster": "relaunch", "desiredStatus": "RUNNING"},
        {"cluster": "relaunch", "desiredStatus": "RUNNING", "nextToken": "2"},
    ]
    assert [each["tasks"] for each in ecs.sent("DescribeTasks")] == [[task_id(1), task_id(2)], [task_id(3)]]


def test_page_that_answers_its_own_token_is_not_read_for_ever(ecs, target):
    for _ in range(2):
        ecs.answer("ListTasks", taskArns=[task_id(1)], nextToken="more")

    with pytest.raises(TransientError, match="the token of that page"):
        target.find_tasks_of(FIRST)


# find_tasks_on


def test_tasks_are_found_by_the_ec2_instance(ecs, target):
    ecs.answer("ListContainerInstances", containerInstanceArns=[MACHINE])
    ecs.answer("ListTasks", taskArns=[task_id(1)])
    ecs.answer("ListTasks", taskArns=[task_id(2), task_id(3)])
    ecs.answer(
        "DescribeTasks",
        tasks=[running(1), running(2, desiredStatus="STOPPED"), running(3, lastStatus="STOPPED")],
        failures=[],
    )

    found = target.find_tasks_on(INSTANCE_ID)

    assert [task.task_id for task in found] == [task_id(1), task_id(2)]
    assert ecs.sent("ListContainerInstances") == [{"cluster": "relaunch", "filter": f"ec2InstanceId == {INSTANCE_ID}"}]
    assert [sent["containerInstance"] for sent in ecs.sent("ListTasks")] == [MACHINE, MACHINE]


def test_instance_that_is_not_in_the_cluster_has_no_tasks(ecs, target):
    ecs.answer("ListContainerInstances", containerInstanceArns=[])

    assert target.find_tasks_on(INSTANCE_ID) == []


def test_machine_that_leaves_between_two_calls_has_no_tasks(ecs, target):
    ecs.answer("ListContainerInstances", containerInstanceArns=[MACHINE])
    ecs.refuse("ListTasks", "InvalidParameterException", "The referenced container instance was not found.")

    assert target.find_tasks_on(INSTANCE_ID) == []


def test_other_refusal_to_list_tasks_is_a_permanent_error(ecs, target):
    ecs.answer("ListContainerInstances", containerInstanceArns=[MACHINE])
    ecs.refuse("ListTasks", "AccessDeniedException", "not authorized to perform: ecs:ListTasks")

    with pytest.raises(PermanentError, match="not authorized"):
        target.find_tasks_on(INSTANCE_ID)


@pytest.mark.parametrize("operation", ["ListContainerInstances", "ListTasks", "DescribeTasks"])
def test_trouble_on_the_way_to_an_instances_tasks_is_transient(ecs, target, operation):
    answers = {
        "ListContainerInstances": {"containerInstanceArns": [MACHINE]},
        "ListTasks": {"taskArns": [task_id(1)]},
    }
    for name in ("ListContainerInstances", "ListTasks", "ListTasks", "DescribeTasks"):
        if name == operation:
            throttle(ecs, name)
            break
        ecs.answer(name, **answers[name])

    with pytest.raises(TransientError):
        target.find_tasks_on(INSTANCE_ID)
