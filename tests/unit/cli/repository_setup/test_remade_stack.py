"""Files of a repository whose stack was removed and deployed again."""

from dataclasses import replace

from relaunch_cli.repository_setup.findings import PLAN_FILE
from relaunch_cli.repository_setup.remade_stack import follow_stack
from unit.cli.repository_setup.trainings import STACK

ROLES = "arn:aws:iam::111122223333:role/relaunch/relaunch-training"
URLS = {name: f"https://{name}.lambda-url.us-east-1.on.aws/" for name in ("oldjobs", "newjobs", "oldplan", "newplan")}
REMADE = replace(
    STACK,
    task_role_arn=f"{ROLES}-TaskRole-New1",
    execution_role_arn=f"{ROLES}-ExecutionRole-New2",
    submit_role_arn=f"{ROLES}-SubmitRole-New3",
    plan_role_arn=f"{ROLES}-PlanRole-New4",
    checkpoint_bucket="relaunch-training-newcheckpointbucket-new5",
    job_api_url=URLS["newjobs"],
    plan_api_url=URLS["newplan"],
)


def test_names_of_the_stack_before_become_those_of_the_stack_as_it_is():
    files = {
        "task-definition.json": f'"{ROLES}-TaskRole-Old1" "{ROLES}-ExecutionRole-Old2"',
        "relaunch.yaml": "checkpoint: s3://relaunch-training-newcheckpointbucket-old5/vision/  # mine",
        "train.yml": f"role: {ROLES}-SubmitRole-Old3\nurl: {URLS['oldjobs']}",
        PLAN_FILE: f"role: {ROLES}-PlanRole-Old4\nurl: {URLS['oldplan']}",
        "Dockerfile": None,
    }

    assert follow_stack(files, REMADE) == {
        "task-definition.json": f'"{ROLES}-TaskRole-New1" "{ROLES}-ExecutionRole-New2"',
        "relaunch.yaml": "checkpoint: s3://relaunch-training-newcheckpointbucket-new5/vision/  # mine",
        "train.yml": f"role: {ROLES}-SubmitRole-New3\nurl: {URLS['newjobs']}",
        PLAN_FILE: f"role: {ROLES}-PlanRole-New4\nurl: {URLS['newplan']}",
        "Dockerfile": None,
    }


def test_what_is_of_something_else_stays():
    kept = {
        "other account": f"{ROLES.replace('1111', '9999')}-TaskRole-Old1",
        "other stack": f"{ROLES.replace('relaunch-training', 'vision-training')}-TaskRole-Old1",
        "role of one training": f"{ROLES}-vision-TaskRole-Old1",
        "own bucket": "s3://acme-checkpoints/vision/",
        "only a url": URLS["oldjobs"],
        "as it is": f"{ROLES}-TaskRole-New1 {URLS['oldjobs']}",
    }

    assert follow_stack(kept, REMADE) == kept
    assert follow_stack(kept, replace(REMADE, checkpoint_bucket="acme-data", plan_role_arn="")) == kept
