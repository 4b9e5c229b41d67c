"""The two stories on ACK: a push whose pod is evicted, and an upload whose node is gone.

The first one takes the steps of ACK's document on shared GPUs: the nodes, a Job with a share, its pod.
"""

from rich.text import Text

from relaunch.core.jobs.attempt import StopKind
from relaunch_local.demo import drawings, pods, steps
from relaunch_local.demo.interruption import newest_step
from relaunch_local.demo.news import show_news
from relaunch_local.demo.outcome import JobResult
from relaunch_local.demo.schedule import running_schedule
from relaunch_local.demo.session import Session
from relaunch_local.demo.story import finish, send_push, send_upload, show_states, show_timeline
from relaunch_local.kubernetes.ack_rules import COMPUTE, COUNT, MEMORY
from relaunch_local.stack.training_cluster import Training

_SHARES = (COMPUTE, COUNT, MEMORY)


def run_eviction_story(session: Session, training: Training) -> JobResult:
    """Run the story of the push: its pod is evicted, saves on SIGTERM, and another Job goes on from there."""
    screen = session.screen
    session.local.hold_trainings()
    screen.heading("The nodes: whether they give shares of memory and compute")
    show_nodes(session)
    screen.heading("A push to GitHub")
    send_push(session)
    job_id = steps.wait_for_acceptance(session, "push")
    with running_schedule(session.local):
        screen.heading("A Job on ACK, as the API server stored it")
        pods.show_job(session, pods.wait_for_job(session, job_id, 1))
        screen.heading("It trains on a share of a GPU")
        pod = pods.wait_for_running(session, job_id, 1)
        pods.show_objects(session, "pods", "app=demo")
        pods.tell_what_needs_a_card(session, "nvidia-smi in the pod, and how the rate follows the share")
        steps.watch_training(session, job_id, 1, training, until=training.hold_at_step)
        pods.wait_for_running_job(session, job_id)
        show_news(session)
        screen.heading("Its pod is evicted")
        saved = pods.evict(session, job_id, pod)
        show_news(session)
        screen.heading("It resumes in another Job")
        pods.wait_for_running(session, job_id, 2)
        result = finish(session, job_id, training, "push", expected_step=saved)
        pods.show_objects(session, "jobs", "app=demo")
    show_timeline(session, job_id)
    return result


def run_node_loss_story(session: Session, training: Training) -> JobResult:
    """Run the story of the upload: the node of its pod is gone, and another one goes on from the newest checkpoint."""
    screen = session.screen
    session.local.hold_trainings()
    screen.heading("An upload to S3")
    send_upload(session)
    job_id = steps.wait_for_acceptance(session, "upload")
    with running_schedule(session.local):
        pod = pods.wait_for_running(session, job_id, 1)
        steps.watch_training(session, job_id, 1, training, until=training.hold_at_step)
        pods.wait_for_running_job(session, job_id)
        screen.heading("Its node is gone")
        saved = lose_node(session, job_id, pod)
        show_news(session)
        other = pods.wait_for_running(session, job_id, 2)
        session.require(other["spec"]["nodeName"] != pod["spec"]["nodeName"], "the second Job runs on another node")
        result = finish(session, job_id, training, "upload", expected_step=saved)
        pods.show_objects(session, "nodes")
    show_states(session, job_id)
    return result


def show_nodes(session: Session) -> None:
    """Show the labels of the nodes, and what they can give, which tells whether shares of compute are on."""
    cluster = pods.cluster_of(session).cluster
    with cluster.clock.lock:
        nodes = cluster.state.all("nodes")
        for node in nodes:
            labels = [each for each in node["metadata"]["labels"].items() if each[0].startswith("ack.")]
            shares = [(name, node["status"]["allocatable"].get(name, "0")) for name in _SHARES]
            facts = [("name", node["metadata"]["name"]), *labels, *((f"allocatable {name}", n) for name, n in shares)]
            session.screen.show(drawings.draw_facts(facts, session.screen.table_width), Text())
            session.require(dict(shares)[COMPUTE] != "0", f"{facts[0][1]} gives shares of compute")


def lose_node(session: Session, job_id: str, pod: pods.Document) -> int:
    """Remove the node of a pod; return the step of the newest complete checkpoint."""
    node = pod["spec"]["nodeName"]
    cluster = pods.cluster_of(session).cluster
    with cluster.clock.lock:
        pods.require_running(session, pod["metadata"]["name"])
        cluster.remove_node(node)
    session.recorder.record_action("node removed", node=node, job_id=job_id)
    session.screen.line(Text(f"{node} is gone: no warning, no SIGTERM", style="bold yellow"))
    stop = session.expect_job(job_id, "the loss of the node is noticed", lambda history: history.attempts[0].stop)
    session.local.release_trainings()
    is_loss = stop.kind in {StopKind.HOST_LOST, StopKind.INTERRUPTION}
    session.require(is_loss, f"the stop is a lost host or an interruption, not {stop.kind}")
    session.screen.line(f"Kubernetes: “{stop.stopped_reason}”: {stop.kind}")
    return newest_step(session, job_id)
