"""The images that the pods of a job report, so that its later attempts run the code of the first.

On ECS images are pinned when a job is accepted; in registries that are not asked then, a tag may move between attempts.
"""

from dataclasses import replace

from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.launches.launch_plan import pod_image
from relaunch.core.revisions.image_name import parse_image_name
from relaunch.core.revisions.revision import main_container


def with_seen_image(job: Job, seen: TaskObservation) -> Job:
    """Return the job with the digest of its pod's image, once that is known; one that it has stays.

    A node that has the same image of another repository may report that one, whose digest the job's own repository
    need not have (kubernetes/kubernetes#95385): it is left out.
    """
    main = main_container(job.definition, job.revision) or ""
    container = seen.containers.get(main)
    asked = parse_image_name(pod_image(job))
    reported = parse_image_name(container.image) if container is not None else None
    if asked is None or reported is None or asked.digest or not reported.digest:
        return job
    if asked.without_tag != reported.without_tag:
        return job
    return replace(job, images={**job.images, main: asked.at(reported.digest)})
