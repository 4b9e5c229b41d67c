"""relaunch.yaml: what starts jobs of a training, and what they need."""

import json

from relaunch_cli.repository_setup.task_definition import MAIN
from relaunch_cli.repository_setup.training import AcceleratorKind, Training
from relaunch_cli.repository_setup.training_stack import TrainingStack


def definition_text(training: Training, family: str, stack: TrainingStack) -> str:
    """Return the definition file of a training."""
    triggers = [f'      - image: {{repository: {stack.repository_name}, tag: "{{sha}}"}}']
    if training.uploads is not None:
        # Quoted as JSON, which YAML is a superset of: a prefix may have any character.
        prefix = f", prefix: {json.dumps(training.uploads.prefix)}" if training.uploads.prefix else ""
        triggers.append(f"      - s3: {{bucket: {training.uploads.bucket}{prefix}}}")
    lines = [
        "# What starts a training, and what it needs. Register it with `relaunch apply relaunch.yaml`.",
        "jobs:",
        f"  {training.name}:",
        f"    task_definition: {family}          # the newest ACTIVE revision is used",
        f"    container: {MAIN}",
        "    # A push builds the image of its commit (.github/workflows/train.yml), and the image starts the job.",
        "    on:",
        *triggers,
        "    accelerator:",
        f"      {_accelerator(training)}",
        "    purchase: spot-then-on-demand",
        f"    checkpoint: s3://{stack.checkpoint_bucket}/{training.name}/",
        f"    estimated_duration: {training.duration}",
        "    max_price_per_hour: 10.00          # USD, of the machine",
        "    # Inputs come from `relaunch submit -i learning_rate=0.1` and from the form of the workflow, and are the",
        "    # training's variables RELAUNCH_INPUT_*.",
        "    # inputs:",
        '    #   learning_rate: {pattern: "[0-9.e-]+", default: "0.05"}',
    ]
    return "\n".join(lines) + "\n"


def _accelerator(training: Training) -> str:
    memory = f"memory: {training.gpu_memory_gib}GiB"
    match training.kind:
        case AcceleratorKind.NEURON:
            return f"neuron: {{devices: {training.count}}}"
        case AcceleratorKind.SHARE:
            return f"gpu: {{{memory}, compute_percent: {training.compute_percent}}}"
        case AcceleratorKind.GPU:
            return f"gpu: {{count: {training.count}, {memory}}}"
