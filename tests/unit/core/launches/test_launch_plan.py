from dataclasses import replace

import pytest

from fakes.builders import (
    container_instance_arn,
    make_attempt,
    make_container,
    make_definition,
    make_job,
    make_offering_key,
    make_placement,
    make_revision,
)
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, NeuronRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, SecretKey
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import AttemptKey, Rank
from relaunch.core.jobs.job import FailedStart
from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.launches.launch import AllNeuronDevices, GpuPartition, GpuShare, NeuronDevices, WholeGpus
from relaunch.core.launches.launch_plan import job_checkpoint_uri, plan_launch, rank_environment, training_environment

FACTS = TriggerFacts("github", "id", "summary", {"RELAUNCH_GIT_SHA": "5e07"})


def launching(**fields):
    return make_job(**{"attempt": make_attempt(), "trigger": FACTS, **fields})


def test_the_request_is_made_of_the_frozen_job_alone():
    request = plan_launch(launching())

    assert request.revision_arn == make_revision().arn
    assert request.capacity_provider == "g5-xlarge-spot"
    assert (request.offering, request.instance_id) == (make_offering_key(), "")
    assert (request.attempt, request.placement_number) == (AttemptKey("resnet-1f2e3d4c", 1), 1)
    assert request.container == "main"
    assert request.command == ("python", "-m", "train")
    assert request.accelerators == WholeGpus(1)
    assert request.network_mode == "bridge"


@pytest.mark.parametrize("target", Target)
def test_a_workload_is_launched_where_there_are_no_task_definitions(target):
    workload = KubernetesWorkload("trainer")
    definition = make_definition(target=target, kubernetes=workload)

    request = plan_launch(launching(definition=definition))

    gpu = definition.accelerator.gpu
    assert (request.workload, request.gpu) == ((None, None) if target is Target.ECS else (workload, gpu))


def test_machines_on_which_it_did_not_start_are_avoided_once_each():
    # One that is not known to EC2 is named by its ARN, which no expression can exclude.
    instances = ("i-0bbb", "i-0aaa", container_instance_arn(), "", "i-0bbb")
    job = launching(failed_starts=tuple(FailedStart(each, "CannotStartContainerError") for each in instances))

    assert plan_launch(job).avoided_instances == ("i-0bbb", "i-0aaa")


def test_a_placement_on_a_machine_of_our_own_names_it():
    frozen = make_attempt(placement=make_placement(capacity_provider="", instance_id="i-0ccc"))

    request = plan_launch(launching(attempt=frozen))

    assert (request.instance_id, request.capacity_provider) == ("i-0ccc", "")


def test_the_same_try_gives_the_same_request_and_every_other_another_key():
    first = launching()
    next_try = launching(attempt=make_attempt(placement=make_placement(2)))
    next_attempt = launching(attempt=make_attempt(2))
    other_job = launching(job_id="resnet-other")

    assert plan_launch(first) == plan_launch(launching())
    planned = [plan_launch(job) for job in (first, next_try, next_attempt, other_job)]
    assert len({(each.attempt, each.placement_number) for each in planned}) == 4


def test_what_the_revision_has_of_its_own_is_reckoned_with():
    revision = make_revision(network_mode="awsvpc", placement_constraint_count=3)

    request = plan_launch(launching(revision=revision))

    assert (request.network_mode, request.own_constraint_count) == ("awsvpc", 3)


def test_where_it_is_not_clear_which_container_counts_none_is_overridden():
    several = make_revision(containers=(make_container(), make_container(name="log")))
    only = make_revision(containers=(make_container(name="train"),))
    unnamed = make_definition(container=None)

    assert plan_launch(launching(definition=unnamed, revision=several)).container == ""
    assert plan_launch(launching(definition=unnamed, revision=only)).container == "train"


def test_all_neuron_devices_are_asked_for_where_the_try_says_so():
    frozen = make_attempt(placement=make_placement(takes_all_neuron=True))

    assert plan_launch(launching(attempt=frozen)).accelerators == AllNeuronDevices()


def test_neuron_devices_that_were_claimed_are_named():
    frozen = make_attempt(placement=make_placement(neuron_devices=(2,)))

    assert plan_launch(launching(attempt=frozen)).accelerators == NeuronDevices((2,))


SHARE = GpuRequirement(memory_mib=2_048, compute_percent=25)


@pytest.mark.parametrize(
    ("accelerator", "partition_size", "gpu"),
    [
        pytest.param(AcceleratorRequirement(gpu=GpuRequirement(count=4)), 1.0, WholeGpus(4), id="whole GPUs"),
        pytest.param(AcceleratorRequirement(gpu=SHARE), 1.0, GpuShare(2_048, 25), id="a share of a whole GPU"),
        pytest.param(AcceleratorRequirement(gpu=SHARE), 0.25, GpuPartition(0.25), id="the part the type has"),
        pytest.param(
            AcceleratorRequirement(neuron=NeuronRequirement(devices=1)), 1.0, None, id="Neuron cannot be overridden"
        ),
        pytest.param(AcceleratorRequirement(instance_types=("g6f.2xlarge",)), 0.25, None, id="as the revision asks"),
    ],
)
def test_gpus_are_asked_for_as_the_chosen_type_has_them(accelerator, partition_size, gpu):
    frozen = make_placement(gpu_partition_size=partition_size)
    job = launching(definition=make_definition(accelerator=accelerator), attempt=make_attempt(placement=frozen))

    assert plan_launch(job).accelerators == gpu


def test_the_training_is_told_what_the_contract_says():
    frozen = make_placement(resume_uri="s3://acme-checkpoints/resnet/resnet-1f2e3d4c/attempt-1/step-100/")
    job = launching(
        attempt=make_attempt(2, placement=frozen),
        inputs={"learning-rate": "0.1", "epochs": "3"},
        definition=make_definition(environment={"SEED": "7"}),
    )

    assert training_environment(job) == {
        "SEED": "7",
        "RELAUNCH_INPUT_LEARNING_RATE": "0.1",
        "RELAUNCH_INPUT_EPOCHS": "3",
        "RELAUNCH_GIT_SHA": "5e07",
        "RELAUNCH_JOB_ID": "resnet-1f2e3d4c",
        "RELAUNCH_ATTEMPT": "2",
        "RELAUNCH_CHECKPOINT_URI": "s3://acme-checkpoints/resnet/resnet-1f2e3d4c/attempt-2/",
        "RELAUNCH_RESUME_URI": "s3://acme-checkpoints/resnet/resnet-1f2e3d4c/attempt-1/step-100/",
    }


def test_without_checkpoints_the_training_is_told_of_none():
    environment = training_environment(launching(definition=make_definition(checkpoint_uri=None)))

    assert "RELAUNCH_CHECKPOINT_URI" not in environment
    assert "RELAUNCH_RESUME_URI" not in environment


def test_nothing_replaces_what_relaunch_sets():
    job = launching(
        definition=make_definition(environment={"RELAUNCH_JOB_ID": "mine"}),
        trigger=replace(FACTS, environment={"RELAUNCH_ATTEMPT": "9"}),
    )

    assert training_environment(job)["RELAUNCH_JOB_ID"] == "resnet-1f2e3d4c"
    assert training_environment(job)["RELAUNCH_ATTEMPT"] == "1"


def test_all_attempts_of_a_job_write_under_one_prefix():
    assert job_checkpoint_uri(launching()) == "s3://acme-checkpoints/resnet/resnet-1f2e3d4c/"


def test_the_pods_of_several_nodes_are_one_request_without_what_the_cluster_tells_each():
    definition = make_definition(
        target=Target.ACK, kubernetes=KubernetesWorkload("trainer:v1"), nodes=4, environment={"PET_RDZV_ID": "own"}
    )
    request = plan_launch(launching(definition=definition))
    again = plan_launch(launching(definition=definition))

    assert request == again
    assert (request.nodes, request.ranks) == (4, (request,))
    environment = request.environment
    assert (environment["RELAUNCH_NODES"], environment["PET_NNODES"], environment["PET_RDZV_ID"]) == ("4", "4", "own")
    assert environment["PET_MASTER_PORT"] == environment["RELAUNCH_MASTER_PORT"]
    assert environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] == "85"
    assert environment["RELAUNCH_GROUP"] == "resnet-1f2e3d4c/1/1"
    assert not {"RELAUNCH_NODE_RANK", "PET_NODE_RANK", "RELAUNCH_MASTER_ADDR", "PET_MASTER_ADDR"} & environment.keys()
    assert plan_launch(launching(definition=replace(definition, nodes=1))).nodes == 1


EIGHT = AcceleratorRequirement(gpu=GpuRequirement(count=8))
OF_REVISION = AcceleratorRequirement(instance_types=("p4d.24xlarge",))
NAME = "PET_NPROC_PER_NODE"


def processes_of(definition, **of_container):
    """What torchrun starts on each node of a job, by the environment of every rank."""
    ranks = (Rank("m-1", "i-1"), Rank("m-2", "i-2"))
    frozen = make_attempt(placement=make_placement(followers=ranks, capacity_provider="", instance_id="i-0"))
    revision = make_revision(containers=(make_container(**of_container), make_container(name="log", gpu_count=2)))
    request = plan_launch(launching(definition=replace(definition, nodes=3), revision=revision, attempt=frozen))
    (found,) = {each.environment.get(NAME) for each in request.ranks}
    return found


@pytest.mark.parametrize(
    ("definition", "of_container", "processes"),
    [
        pytest.param(make_definition(accelerator=EIGHT), {}, "8", id="as many as are asked for"),
        pytest.param(make_definition(), {"gpu_count": 8}, None, id="one, which is torchrun's default"),
        pytest.param(make_definition(accelerator=OF_REVISION), {"gpu_count": 4}, "4", id="those of the revision"),
        pytest.param(make_definition(accelerator=OF_REVISION), {"name": "other"}, None, id="no such container"),
        pytest.param(
            make_definition(accelerator=AcceleratorRequirement(gpu=SHARE)), {"gpu_count": 4}, None, id="a share of one"
        ),
        pytest.param(make_definition(accelerator=EIGHT, environment={NAME: "2"}), {}, "2", id="the definition says it"),
        pytest.param(
            make_definition(accelerator=EIGHT), {"torchrun_variables": (NAME,)}, None, id="its container has it"
        ),
    ],
)
def test_torchrun_starts_a_process_for_each_gpu_of_a_node(definition, of_container, processes):
    assert processes_of(definition, **of_container) == processes


def test_torchrun_starts_a_process_for_each_gpu_of_a_pod_that_does_not_say_another_number():
    workload = KubernetesWorkload("trainer:v1")
    definition = make_definition(target=Target.ACK, kubernetes=workload, nodes=4, accelerator=EIGHT)
    own = replace(definition, kubernetes=replace(workload, secrets={NAME: SecretKey("a", "b")}))

    assert plan_launch(launching(definition=definition)).environment[NAME] == "8"
    assert NAME not in plan_launch(launching(definition=own)).environment
    assert NAME not in plan_launch(launching(definition=replace(definition, nodes=1))).environment


def test_the_time_that_torchrun_waits_is_that_of_the_task_definition_if_it_has_one():
    revision = make_revision(containers=(make_container(torchrun_variables=("TORCH_ELASTIC_SHUTDOWN_TIMEOUT",)),))
    job = launching(definition=make_definition(nodes=2), revision=revision)

    assert "TORCH_ELASTIC_SHUTDOWN_TIMEOUT" in rank_environment(launching(definition=make_definition(nodes=2)), 0)
    assert "TORCH_ELASTIC_SHUTDOWN_TIMEOUT" not in rank_environment(job, 0)
