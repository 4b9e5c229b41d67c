"""relaunch.yaml: what starts jobs of a training, and what they need."""

import json

from relaunch_cli.repository_setup.task_definition import MAIN
from relaunch_cli.repository_setup.training import AcceleratorKind, Training
from relaunch_cli.repository_setup.training_stack import TrainingStack


def definition_text(training: Training, family: str, repository: str, stack: TrainingStack) -> str:
    """Return the definition file of a training in a repository on GitHub."""
    image = f'{{repository: {stack.repository_name}, tag: "{training.tag_pattern}"}}'
    triggers = [f"      - image: {image}"]
    if training.has_webhook:
        kind, _, ref = stack.github_ref.removeprefix("refs/").partition("/")
        pushed = f"{'tags' if kind == 'tags' else 'branches'}: [{json.dumps(ref or 'main')}]"
        push = f"repository: {repository}, event: push, {pushed}, wait_for_image: {image}"
        triggers = [f"      - github: {{{push}}}"]
    if training.uploads is not None:
        # Quoted as JSON, which YAML is a superset of: a prefix may have any character.
        prefix = f", prefix: {json.dumps(training.uploads.prefix)}" if training.uploads.prefix else ""
        triggers.append(f"      - s3: {{bucket: {training.uploads.bucket}{prefix}}}")
    started = "its job waits for the image" if training.has_webhook else "the image starts the job"
    lines = [
        "# What starts a training, and what it needs. Register it with `relaunch apply relaunch.yaml`.",
        "jobs:",
        f"  {training.name}:",
        f"    task_definition: {family}          # the newest ACTIVE revision is used",
        f"    container: {MAIN}",
        f"    # A push builds the image of its commit (.github/workflows/train.yml), and {started}.",
        "    on:",
        *triggers,
        "    accelerator:",
        f"      {_accelerator(training)}",
        "    purchase: spot-then-on-demand",
        f"    checkpoint: s3://{stack.checkpoint_bucket}/{training.name}/",
        f"    estimated_duration: {training.duration}",
        f"    max_price_per_hour: {_price_cap(training):.2f}          # USD, of the machine",
        *_callers(stack),
        *_choices(training),
        "    # Inputs come from `relaunch submit -i learning_rate=0.1`, for example, and are the training's variables",
        "    # RELAUNCH_INPUT_*.",
        "    # inputs:",
        '    #   learning_rate: {pattern: "[0-9.e-]+", default: "0.05"}',
    ]
    return "\n".join(lines) + "\n"


def _choices(training: Training) -> list[str]:
    """Return what many want and nobody is surprised by, as comments: a push that starts nothing would surprise."""
    # An image has no branch.
    group = '"{branch}"' if training.has_webhook else "one"
    lines = [
        "    # Of several pushes only the newest one is trained: a newer job has the one in progress cancelled.",
        f"    # concurrency: {{group: {group}, cancel_in_progress: true}}",
    ]
    paths = '    # With `paths: ["**", "!**.md"]` in `github`, pushes that change nothing but texts start no job.'
    return [*lines, paths] if training.has_webhook else lines


def _callers(stack: TrainingStack) -> list[str]:
    if not stack.callers:
        return []
    return ["    # Roles of other repositories start no job of it.", f"    callers: [{', '.join(stack.callers)}]"]


def _price_cap(training: Training) -> float:
    """Return about twice the on-demand price of the machines that are usual for so many devices."""
    return max(10.0, training.count * (5.0 if training.kind is AcceleratorKind.NEURON else 10.0))


def _accelerator(training: Training) -> str:
    memory = f"memory: {training.gpu_memory_gib}GiB"
    match training.kind:
        case AcceleratorKind.NEURON:
            return f"neuron: {{devices: {training.count}}}"
        case AcceleratorKind.SHARE:
            return f"gpu: {{{memory}, compute_percent: {training.compute_percent}}}"
        case AcceleratorKind.GPU:
            return f"gpu: {{count: {training.count}, {memory}}}"
