"""relaunch.yaml: what starts jobs of a training, and what they need."""

import json

from relaunch_cli.repository_setup.task_definition import MAIN
from relaunch_cli.repository_setup.training import AcceleratorKind, Training
from relaunch_cli.repository_setup.training_stack import TrainingStack
from relaunch_cli.repository_setup.watched_paths import paths_text


def definition_text(training: Training, family: str, repository: str, stack: TrainingStack) -> str:
    """Return the definition file of a training in a repository on GitHub."""
    image = f'repository: {stack.repository_name}, tag: "{training.tag_pattern}"'
    triggers = [f"      - image: {{{image}}}"]
    if training.has_webhook:
        triggers = _push_trigger(repository, image, stack)
    if training.uploads is not None:
        # Quoted as JSON, which YAML is a superset of: a prefix may have any character.
        prefix = f", prefix: {json.dumps(training.uploads.prefix)}" if training.uploads.prefix else ""
        triggers.append(f"      - s3: {{bucket: {training.uploads.bucket}{prefix}}}")
    started = "A push starts a job, which waits for the" if training.has_webhook else "What starts a job is the"
    lines = [
        "# What starts a training, and what it needs. Register it with `relaunch apply relaunch.yaml`.",
        "# Editors complete and check it by `relaunch schema > relaunch.schema.json`, and this as its first line:",
        "# # yaml-language-server: $schema=relaunch.schema.json",
        "jobs:",
        f"  {training.name}:",
        f"    task_definition: {family}          # the newest ACTIVE revision is used",
        f"    container: {MAIN}",
        f"    # {started} image of a commit: .github/workflows/train.yml builds it at a push.",
        "    # Without that file it is to be built in another way, and pushed with its commit as the tag.",
        "    on:",
        *triggers,
        "    accelerator:",
        f"      {_accelerator(training)}",
        "    purchase: spot-then-on-demand",
        f"    checkpoint: s3://{stack.checkpoint_bucket}/{training.name}/",
        "    # Once it was measured, say on which accelerator, for example 5h@A10G: no two models are equally fast.",
        "    # A guess, to be corrected: what costs least for so long a training, interruptions included, is chosen.",
        f"    estimated_duration: {training.duration}",
        "    # It is stopped when its attempts have run for so long together:",
        "    # max_runtime: 48h",
        "    # A guess, to be corrected: no machine that costs more USD per hour is launched.",
        f"    max_price_per_hour: {_price_cap(training):.2f}",
        *_callers(stack),
        *_concurrency(training, stack),
        "    # Inputs come from `relaunch submit -i learning_rate=0.1`, for example, and are the training's variables",
        "    # RELAUNCH_INPUT_*.",
        "    # inputs:",
        '    #   learning_rate: {pattern: "[0-9.e-]+", default: "0.05"}',
    ]
    return "\n".join(lines) + "\n"


def _push_trigger(repository: str, image: str, stack: TrainingStack) -> list[str]:
    kind, _, ref = stack.github_ref.removeprefix("refs/").partition("/")
    watched = [
        "          # train.yml has the same list. Without it, here and there, every push starts a job.",
        f"          paths: {paths_text()}",
    ]
    return [
        "      - github:",
        f"          repository: {repository}",
        "          event: push",
        f"          {'tags' if kind == 'tags' else 'branches'}: [{json.dumps(ref or 'main')}]",
        # Pushes of tags have no paths.
        *([] if kind == "tags" else watched),
        # A build may wait for that of the push before.
        f"          wait_for_image: {{{image}, timeout: 1h}}",
    ]


def _concurrency(training: Training, stack: TrainingStack) -> list[str]:
    """Return how many jobs train at a time; where no group fits, as a comment that says why."""
    if training.has_webhook and not stack.github_ref.startswith("refs/tags/"):
        return [
            "    # One training of a branch at a time: of the pushes that wait, the newest is trained next. The one",
            "    # that runs goes on, for it has cost money: `cancel_in_progress: true` ends it for a newer push.",
            "    # Without this line pushes train side by side: write github.sha in `concurrency` of train.yml then.",
            '    concurrency: {group: "{branch}", cancel_in_progress: false}',
        ]
    return [
        "    # Its jobs run side by side: images and tags have no branch to group them by. With this line one runs at",
        "    # a time, and of all that wait only the newest stays, those of uploads and of `relaunch submit` too:",
        "    # concurrency: {group: one, cancel_in_progress: false}",
    ]


def _callers(stack: TrainingStack) -> list[str]:
    if not stack.callers:
        return []
    return ["    # Roles of other repositories start no job of it.", f"    callers: [{', '.join(stack.callers)}]"]


def _price_cap(training: Training) -> float:
    """Return about twice the on-demand price of the machines that are usual for so many devices."""
    if training.kind is AcceleratorKind.NEURON:
        # Trainium with two devices or more comes by sixteen: trn1.32xlarge costs 21.50 USD, trn1n.32xlarge 24.78 USD.
        return 10.0 if training.count == 1 else 45.0
    return training.count * 10.0


def _accelerator(training: Training) -> str:
    memory = f"memory: {training.gpu_memory_gib}GiB"
    match training.kind:
        case AcceleratorKind.NEURON:
            return f"neuron: {{devices: {training.count}}}"
        case AcceleratorKind.SHARE:
            return f"gpu: {{{memory}, compute_percent: {training.compute_percent}}}"
        case AcceleratorKind.GPU:
            return f"gpu: {{count: {training.count}, {memory}}}"
