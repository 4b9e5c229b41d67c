"""The workflows of a training: one builds the image of a commit, another one plans what a pull request changes."""

import json

from relaunch_cli.repository_setup.findings import DEFINITION_FILE
from relaunch_cli.repository_setup.training import Training
from relaunch_cli.repository_setup.training_stack import TrainingStack
from relaunch_cli.repository_setup.watched_paths import paths_text

# By commit, because a tag can move.
_CHECKOUT = "actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8  # v5.0.0"
_CREDENTIALS = "aws-actions/configure-aws-credentials@e6de054238d6b7531b4efff3b6587d9aade6a06c  # v6.2.3"

_TEXT = """\
# Builds the image of each commit and pushes it with the commit in its tag: relaunch.yaml says what that starts.
name: Train
on:
  push:
    {refs}: [{ref}]
{paths}{dispatch}permissions: {{}}
jobs:
  train:
    name: Build and train
    runs-on: ubuntu-latest
{environment}    # Pushes to a branch are built one after the other, of those that wait only the newest: no image of
    # an older commit becomes NAME-latest. A build that runs is finished: a job may wait for its image. For an
    # image of each push, write github.sha in the place of github.ref{also}.
    concurrency:
      group: train-${{{{ {group} }}}}
      cancel-in-progress: false
    permissions:
      contents: read  # the checkout
      id-token: write  # AWS gives credentials for the token: no secret is stored at GitHub
    steps:
      - uses: {checkout}
        with:
          persist-credentials: false
      - uses: {credentials}
        timeout-minutes: 5  # without it, a request that hangs holds up all later pushes for six hours
        with:
          aws-region: {region}
          role-to-assume: {role}
{room}      - name: Build the image of the commit
{pushed}        env:
          NAME: {name}
          REPOSITORY: {uri}
          TRAINING: {training}
          BUILDX_NO_DEFAULT_ATTESTATIONS: 1  # what is pushed is the image alone, without a list of images around it
        run: |
          tag="$TRAINING-$GITHUB_SHA"
          # A re-run finds its image, whose tag cannot move.
          if ! aws ecr describe-images --repository-name "$NAME" --image-ids "imageTag=$tag" > /dev/null; then
            aws ecr get-login-password | docker login --username AWS --password-stdin "${{REPOSITORY%%/*}}"
            # Without it, base images of public.ecr.aws come at one request per second.
            aws ecr-public get-login-password --region us-east-1 |
              docker login --username AWS --password-stdin public.ecr.aws || true
            docker build --tag "$REPOSITORY:$tag" --tag "$REPOSITORY:$TRAINING-latest" .
            # First the one that jobs run which no image starts: it starts none.
            docker push "$REPOSITORY:$TRAINING-latest" ||
              echo "::warning::$TRAINING-latest cannot be moved: jobs that no image starts run the one that it has"
            # A run of the same commit may have been faster.
            docker push "$REPOSITORY:$tag" ||
              aws ecr describe-images --repository-name "$NAME" --image-ids "imageTag=$tag" > /dev/null
          fi
{submit}"""

_PATHS = """\
    # A push that changes nothing of these builds no image, and so starts no job. Without this line every push does.
{same}    paths: {paths}
"""

_SAME = f"""\
    # {DEFINITION_FILE} has the same list: the job of a push waits for the image that is built here.
"""

_DISPATCH = """\
  # Inputs that relaunch.yaml declares can be asked for here, under the same names.
  workflow_dispatch:
"""

_ROOM = """\
      # Deep Learning Containers are larger than what a hosted runner has free.
      - name: Make room for the base image
        run: sudo rm -rf /usr/local/lib/android /usr/share/dotnet /usr/local/.ghcup /opt/hostedtoolcache/CodeQL
"""

# In a definition that an image starts a job of.
_PUSHED = """\
        if: github.event_name == 'push'  # the image that a form builds would start a job too, without its inputs
"""

_SUBMIT = """\
      # A push starts a job without this step, which starts one with the inputs of the form.
      - name: Start a job
        if: github.event_name == 'workflow_dispatch'
        uses: {action}
        with:
          url: {url}
          role-to-assume: {role}
          definition: {definition}
          image-tag: {definition}-${{{{ github.sha }}}}
          inputs: ${{{{ toJSON(inputs) }}}}
"""


_PLAN = """\
# Shows in each pull request that changes {definition_file} what that would run, where and for how much.
name: Plan
on:
  pull_request:
    paths: [{definition_file}]
permissions: {{}}
concurrency:
  group: plan-${{{{ github.event.pull_request.number }}}}
  cancel-in-progress: true  # an older run would write over a newer plan
jobs:
  plan:
    name: Plan
    runs-on: ubuntu-latest
    # No environment: it would give the job another subject, which the role does not trust.
    permissions:
      contents: read  # the file, at the pull request's commit and at its base
      id-token: write  # AWS gives credentials for the token, which may plan and nothing else
      pull-requests: write  # the one comment
    steps:
      - uses: {action}
        with:
          mode: plan
          url: {url}
          role-to-assume: {role}
          definition-file: {definition_file}
"""


def plan_workflow_text(stack: TrainingStack, action: str) -> str:
    """Return the workflow of pull requests, with the Action as OWNER/NAME@COMMIT."""
    return _PLAN.format(
        definition_file=DEFINITION_FILE, action=action, url=stack.plan_api_url, role=stack.plan_role_arn
    )


def workflow_text(training: Training, stack: TrainingStack, action: str, *, is_large: bool) -> str:
    """Return the workflow.

    `action` is the Action as OWNER/NAME@COMMIT, empty if it is nowhere to be had. `is_large`: the image needs more room
    than a hosted runner has.
    """
    # A run of its own for each dispatch: it has inputs that no push has.
    group = "github.event_name == 'workflow_dispatch' && github.run_id || github.ref" if action else "github.ref"
    kind, _, ref = stack.github_ref.removeprefix("refs/").partition("/")
    role = stack.submit_role_arn
    url = stack.job_api_url
    return _TEXT.format(
        refs="tags" if kind == "tags" else "branches",
        # Quoted: a branch may be called 1.0.
        ref=json.dumps(ref or "main"),
        # Pushes of tags have no paths.
        paths="" if kind == "tags" else _PATHS.format(paths=paths_text(), same=_SAME if training.has_webhook else ""),
        group=group,
        also=f", and leave `concurrency` out of {DEFINITION_FILE}" if training.has_webhook else "",
        dispatch=_DISPATCH if action else "",
        environment=f"    environment: {json.dumps(stack.github_environment)}\n" if stack.github_environment else "",
        checkout=_CHECKOUT,
        credentials=_CREDENTIALS,
        region=stack.region,
        role=role,
        room=_ROOM if is_large else "",
        pushed="" if training.has_webhook or not action else _PUSHED,
        name=stack.repository_name,
        training=training.name,
        uri=stack.repository_uri,
        submit=_SUBMIT.format(action=action, url=url, role=role, definition=training.name) if action else "",
    )
