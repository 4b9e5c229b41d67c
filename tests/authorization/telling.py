"""What the stories of all functions use, and what AWS does with their roles by itself."""

from dataclasses import dataclass

from authorization import job_stories, machine_stories, notice_stories
from authorization.stories import Stories
from fakes.role_world import of_function
from relaunch_local.iam.permission import Permission
from relaunch_local.iam.reference import is_without_key
from relaunch_local.iam.rights import Policies, Right
from relaunch_local.templates.document import read_template
from relaunch_local.templates.implied_permissions import Implied, implied_permissions
from relaunch_local.templates.roles import roles_of_functions

FLEET = "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html"
FUNCTIONS = (
    *("github_webhook", "submit_job", "job_api", "plan_api", "launch_attempt", "request_machine"),
    *("observe_capacity", "observe_task", "reconcile", "refresh_offerings", "send_notices"),
)
STORIES = (
    job_stories.tell_of_a_life_on_machines,
    job_stories.tell_of_effects_left_behind,
    job_stories.tell_of_messages_that_fail,
    job_stories.tell_of_suspects,
    machine_stories.tell_of_what_the_cluster_is_asked,
    job_stories.tell_of_a_revision_that_is_run_as_it_is,
    job_stories.tell_of_requests,
    job_stories.tell_of_a_budget_that_is_used_up,
    job_stories.tell_of_a_file_that_is_planned,
    machine_stories.tell_of_a_request_that_ec2_refuses,
    job_stories.tell_of_an_image_of_one_platform,
    job_stories.tell_of_a_family_whose_newest_revision_is_inactive,
    job_stories.tell_of_old_derived_revisions,
    machine_stories.tell_of_instances_of_nobody,
    job_stories.tell_of_a_capacity_block_that_ends,
    machine_stories.tell_of_clusters,
    machine_stories.tell_of_a_machine_in_another_zone,
    machine_stories.tell_of_machines_in_a_reservation,
    machine_stories.tell_of_an_agent_that_stays_away,
    machine_stories.tell_of_a_refresh,
    machine_stories.tell_of_a_sweep_of_failed_deliveries,
    job_stories.tell_of_a_delivery,
    job_stories.tell_of_an_event_about_a_job,
    notice_stories.tell_of_notices,
)
# Resources that CreateFleet has, and that no call of ours shows whether EC2 looks at.
FLEET_OF_ECS = (
    "https://docs.aws.amazon.com/aws-managed-policy/latest/reference/"
    "AmazonECSInfrastructureRolePolicyForManagedInstances.html"
)
KEPT = {
    ("request_machine", "ec2:CreateFleet", "volume"): FLEET,
    ("request_machine", "ec2:CreateFleet", "image"): FLEET,
    ("request_machine", "ec2:CreateFleet", "security-group"): FLEET_OF_ECS,
    ("request_machine", "ec2:CreateFleet", "network-interface"): FLEET_OF_ECS,
}
# `zone=subnet` and `kind=template:version` cannot be picked apart in a template; a zone, a kind or a version is no ID.
_NAMES = (
    *("subnet/us-east-1a", "subnet/us-east-1b"),
    *("launch-template/gpu", "launch-template/neuron", "launch-template/2"),
)


@dataclass
class Told:
    """What all stories used, and what was refused."""

    used: list[Permission]
    refused: list[Permission]
    implied: list[Implied]
    policies: dict[str, Policies]

    def called_by(self, function: str) -> list[Permission]:
        """Return the permissions that calls of a function required, each once."""
        return of_function(self.used, function)

    def used_by(self, function: str) -> list[Permission]:
        """Return these and those that AWS needs from the function's role."""
        return of_function([*self.used, *(each.permission for each in self.implied)], function)


def tell_all() -> Told:
    """Tell every story, each in a stack of its own; moto must be active."""
    used: list[Permission] = []
    refused: list[Permission] = []
    for tell in STORIES:
        stories = Stories()
        tell(stories)
        used += stories.world.used
        refused += stories.world.refused
    template, world = read_template(), stories.world
    names = {each: world.name_of(each) for each in roles_of_functions(template)}
    implied = [
        each
        for logical_id, function in names.items()
        for each in implied_permissions(function, logical_id, template, world.resolver)
    ]
    policies = {name: Policies(each, is_without_key) for name, each in world.policies.items()}
    return Told(used, refused, implied, policies)


def is_of_a_name(right: Right) -> bool:
    """Return whether a right names nothing, because a zone, a kind or a version stands for an ID."""
    return right.resource.endswith(_NAMES)


def page_of(function: str, right: Right) -> str | None:
    """Return the page that a right is kept for, None if calls have to need it."""
    kind = right.resource.split(":")[-1].partition("/")[0]
    return KEPT.get((function, right.action, kind))
