"""Invalid definition files: all problems at once, each with its position and a helpful message."""

# ruff: noqa: E501 - one case a line, with the whole message

import pytest

from fakes.builders import make_instance_type
from relaunch.adapters.definition_file.models import WORK_MISSING
from relaunch.adapters.definition_file.parser import DefinitionFileError, parse_definitions

CATALOGUE = {
    "g5.xlarge": make_instance_type(),
    "g6.xlarge": make_instance_type("g6.xlarge", accelerator_model="L4"),
    "trn1.2xlarge": make_instance_type(
        "trn1.2xlarge", accelerator_model="Trainium", gpu_count=0, logical_gpu_count=0, neuron_devices=1
    ),
    "inf2.xlarge": make_instance_type(
        "inf2.xlarge", accelerator_model="Inferentia2", gpu_count=0, logical_gpu_count=0, neuron_devices=1
    ),
}


def problems_of(text: str) -> list[str]:
    with pytest.raises(DefinitionFileError) as caught:
        parse_definitions(text, "f", CATALOGUE)
    return str(caught.value).splitlines()


def problems_of_job(*lines: str, accelerator: str = "{gpu: {}}") -> list[str]:
    """Return the problems of one job, without the file's name; the given lines are 3 and following."""
    body = [*lines, "task_definition: trainer", f"accelerator: {accelerator}"]
    found = problems_of("jobs:\n  a:\n" + "".join(f"    {line}\n" for line in body))
    return [problem.removeprefix("f:") for problem in found]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        pytest.param("acelerator: {}", "3:5: jobs.a.acelerator: unknown key `acelerator`; did you mean `accelerator`?"),
        pytest.param("estimated_duraton: 1h", "3:5: jobs.a.estimated_duraton: unknown key `estimated_duraton`; did you mean `estimated_duration`?"),
        pytest.param("disk: 200", "3:11: jobs.a.disk: 200 has no unit: write 200GiB or 200MiB"),
        pytest.param("disk: 1MiB", "3:11: jobs.a.disk: `1MiB` is not a whole number of GiB: EBS volumes are sized in GiB"),
        pytest.param("disk: big", "3:11: jobs.a.disk: `big` is not a size: write it like 16GiB"),
        pytest.param("disk: true", "3:11: jobs.a.disk: `True` is not a size: write it like 16GiB"),
        pytest.param("disk: 0GiB", "3:11: jobs.a.disk: `0GiB` is not a whole number of MiB above 0"),
        pytest.param("disk:", "3:5: jobs.a.disk: has no value: give it one or leave the key out"),
        pytest.param("purchase: spt", "3:15: jobs.a.purchase: `spt` is none of spot, on-demand, spot-then-on-demand, reserved, reserved-then-spot, reserved-then-on-demand, reserved-then-spot-then-on-demand; did you mean `spot`?"),
        pytest.param("target: acs", "2:3: jobs.a.kubernetes: `kubernetes` is missing: acs needs its image at least"),
        pytest.param("target: eks", "3:13: jobs.a.target: `eks` is a cluster like any other: write `kubernetes`"),
        pytest.param("target: akc", "3:13: jobs.a.target: `akc` is none of ecs, kubernetes, ack, acs; did you mean `ack`?"),
        pytest.param("target: [ack]", "3:13: jobs.a.target: `['ack']` is none of ecs, kubernetes, ack, acs; did you mean `ack` or `acs`?"),
        pytest.param("target: {a: b}", "3:13: jobs.a.target: `{'a': 'b'}` is none of ecs, kubernetes, ack, acs"),
        pytest.param("callers: [ci-vision]", "3:15: jobs.a.callers[0]: `ci-vision` is not a caller of job_api: write it like arn:aws:iam::111122223333:role/ci-vision, where a * may follow the beginning of the name, or `invoke`"),
        pytest.param("concurrency: {group: 'main {sha}'}", "3:18: jobs.a.concurrency: `{sha}` in `group` stands for nothing, there is {branch}, {repository}, {definition}"),
        pytest.param("concurrency: {group: '{inputs.model}'}", "3:18: jobs.a.concurrency: `{inputs.model}` in `group` stands for nothing, there is {branch}, {repository}, {definition}; declare it under `inputs`"),
        pytest.param("concurrency: {cancel_in_progress: true}", "3:5: jobs.a.concurrency.group: `group` is missing"),
        pytest.param("concurrency: main", '3:18: jobs.a.concurrency: must be a mapping of keys to values: {group: "{branch}"}'),
        pytest.param("concurrency: {group: '{brnch}'}", "3:18: jobs.a.concurrency: `{brnch}` in `group` stands for nothing, there is {branch}, {repository}, {definition}; did you mean `{branch}`?"),
        pytest.param("concurrency: {group: '${{ github.ref }}'}", "3:18: jobs.a.concurrency: `{ github.ref }` in `group` stands for nothing, there is {branch}, {repository}, {definition}; it takes no expressions of GitHub Actions: instead of `${{ github.ref }}` write `{branch}`"),
        pytest.param("concurrency: {group: ${{ github.ref }}}", "3:27: not valid YAML: while parsing a flow mapping, expected ',' or '}', but got '{' (a text with braces needs quotes: \"{branch}\")"),
        pytest.param("notices: {team-ml: failed}", "3:24: jobs.a.notices.team-ml: must be a list: [failed]"),
        pytest.param("notices: team-ml", "3:14: jobs.a.notices: must be a list of receivers, [team-ml], or a mapping of them to kinds, {team-ml: [failed]}"),
        pytest.param("links: {W&B: 'http://wandb.ai/{job_id}'}", "3:18: jobs.a.links.W&B: `http://wandb.ai/{job_id}` does not begin with https://"),
        pytest.param("links: {W&B: 'https://wandb.ai/{sha}'}", "3:18: jobs.a.links.W&B: `https://wandb.ai/{sha}` has braces that stand for nothing: there is {job_id}, {attempt}, {definition}"),
        pytest.param("links: {a/b: 'https://wandb.ai/'}", "3:13: jobs.a.links.a/b: `a/b` is no name of a link: up to 40 letters, digits, blanks, &, ., _ and -"),
        pytest.param("concurrency: {group: a, gruop: b}", "3:29: jobs.a.concurrency.gruop: unknown key `gruop`; did you mean `group`?"),
        pytest.param("concurrency: {group: a, cancel-in-progress: true}", "3:29: jobs.a.concurrency.cancel-in-progress: unknown key `cancel-in-progress`; did you mean `cancel_in_progress`?"),
        pytest.param("concurrency: {group: ''}", "3:26: jobs.a.concurrency.group: is empty: leave the key out, or give it something"),
        pytest.param("max_running_jobs: 1000001", "3:23: jobs.a.max_running_jobs: must be 1,000,000 or less"),
        pytest.param("disk: 10000000000GiB", "3:11: jobs.a.disk: `10000000000GiB` is more than any machine has, or more exact than any size"),
        pytest.param("max_runtime: 10000000000s", "3:18: jobs.a.max_runtime: `10000000000s` is longer than 30 days"),
        pytest.param("max_runtime: 999999999d999999999h", "3:18: jobs.a.max_runtime: `999999999d999999999h` is longer than 30 days"),
        pytest.param("max_runtime: ٣h", "3:18: jobs.a.max_runtime: `٣h` is not a duration: write it like 20h, 30m or 1h30m"),
        pytest.param("callers: []", "3:14: jobs.a.callers: is empty: leave the key out, or give it something"),
        pytest.param("on: [{github: {repository: acme/.., event: release}}]", "3:32: jobs.a.on[0].github.repository: `acme/..` is not a GitHub repository: write it like owner/name"),
        pytest.param("checkpoint: oss://acme/a/", "3:17: jobs.a.checkpoint: `oss://acme/a/` is not an S3 location: write it like s3://bucket/prefix/; oss:// is for clusters"),
        pytest.param("max_running_jobs: 0", "3:23: jobs.a.max_running_jobs: must be 1 or more"),
        pytest.param("max_running_jobs: five", "3:23: jobs.a.max_running_jobs: must be a whole number, not `five`"),
        pytest.param('max_failures: "5"', "3:19: jobs.a.max_failures: must be a whole number: write 5 without quotes"),
        pytest.param('max_failures: "1.5"', "3:19: jobs.a.max_failures: must be a whole number, not `1.5`"),
        pytest.param('max_price_per_hour: "4.5"', "3:25: jobs.a.max_price_per_hour: must be a number: write 4.5 without quotes"),
        pytest.param("max_failures: 1.5", "3:19: jobs.a.max_failures: must be a whole number, not `1.5`"),
        pytest.param(
            "retry: {max_early_failures: -1}", "3:33: jobs.a.retry.max_early_failures: must be 0 or more"
        ),
        pytest.param(
            "retry: {on_exit_codes: [256]}", "3:29: jobs.a.retry.on_exit_codes[0]: must be 255 or less"
        ),
        pytest.param(
            "retry: {never_on_exit_codes: [0]}",
            "3:35: jobs.a.retry.never_on_exit_codes[0]: must be 1 or more",
        ),
        pytest.param(
            "retry: {on_exit_codes: [2, 75], machine_exit_codes: [75]}",
            "3:57: jobs.a.retry.machine_exit_codes: 75 is in `on_exit_codes` too: an exit code has one meaning",
        ),
        pytest.param(
            "retry: {max_failures: 3}",
            "3:13: jobs.a.retry.max_failures: unknown key `max_failures`; did you mean `max_early_failures`?",
        ),
        pytest.param("max_failures: true", "3:19: jobs.a.max_failures: must be a whole number, not `true`"),
        pytest.param("max_price_per_hour: 0", "3:25: jobs.a.max_price_per_hour: must be more than 0"),
        pytest.param("max_price_per_hour: cheap", "3:25: jobs.a.max_price_per_hour: must be a number, not `cheap`"),
        pytest.param("max_price_per_hour: 1e999", "3:25: jobs.a.max_price_per_hour: must be a finite number"),
        pytest.param("command: python train.py", "3:14: jobs.a.command: must be a list, not `python train.py`"),
        pytest.param("command: []", "3:14: jobs.a.command: is empty: leave the key out, or give it something"),
        pytest.param("environment: {A: 10}", '3:22: jobs.a.environment.A: must be text: write it in quotes, "10"'),
        pytest.param("environment: {RELAUNCH_X: a}", "3:19: jobs.a.environment.RELAUNCH_X: `RELAUNCH_X` is taken: names that start with RELAUNCH_ or ECS_ are set for you"),
        pytest.param("environment: {A-B: a}", "3:19: jobs.a.environment.A-B: `A-B` is not a variable's name (letters, digits and _)"),
        pytest.param("max_runtime: 20", "3:18: jobs.a.max_runtime: 20 has no unit: write 20h or 20m"),
        pytest.param("max_runtime: 2 hours", "3:18: jobs.a.max_runtime: `2 hours` is not a duration: write it like 20h, 30m or 1h30m"),
        pytest.param("max_runtime: 0h", "3:18: jobs.a.max_runtime: `0h` is no time at all"),
        pytest.param("max_runtime: 31d", "3:18: jobs.a.max_runtime: `31d` is longer than 30 days"),
        pytest.param("max_runtime: 99999999999999d", "3:18: jobs.a.max_runtime: `99999999999999d` is longer than 30 days"),
        pytest.param("estimated_duration: 60h", "3:25: jobs.a.estimated_duration: 60h is longer than max_runtime (48h, its default): no job could finish"),
        pytest.param("estimated_duration: {on: A10, hours: 2}", "3:26: jobs.a.estimated_duration.on.model: unknown accelerator model `A10`; did you mean `A10G`?", id="measured on an unknown model"),
        pytest.param("estimated_duration: {on: A10G}", "3:5: jobs.a.estimated_duration.hours: `hours` is missing", id="measured in no time"),
        pytest.param("estimated_duration: {on: A10G, hours: 0}", "3:43: jobs.a.estimated_duration.hours: must be more than 0", id="measured as nothing"),
        pytest.param("checkpoint: s3://b1/{job}/", "3:17: jobs.a.checkpoint: `s3://b1/{job}/`: no placeholders here; Relaunch adds `<job>/attempt-N/` itself"),
        pytest.param("checkpoint: acme/a", "3:17: jobs.a.checkpoint: `acme/a` is not an S3 location: write it like s3://bucket/prefix/"),
        pytest.param("container: a b", "3:16: jobs.a.container: `a b` is not a container name (letters, digits, - and _)"),
        pytest.param("inputs: {Rate: {pattern: a}}", "3:14: jobs.a.inputs.Rate: `Rate` is not an input's name (lower-case letters, digits and _, a letter first)"),
        pytest.param("inputs: {r: {pattern: '[0-9'}}", "3:27: jobs.a.inputs.r.pattern: `[0-9` is not a regular expression that RE2 takes: missing ]: [0-9"),
        pytest.param("inputs: {r: {pattern: '(?=a)b'}}", "3:27: jobs.a.inputs.r.pattern: `(?=a)b` is not a regular expression that RE2 takes: invalid perl operator: (?=; look-around, references to groups and atomic groups are not supported, for they can take exponential time"),
        pytest.param("inputs: {r: {pattern: '[0-9]', default: '10'}}", "3:45: jobs.a.inputs.r.default: `10` does not match its own pattern `[0-9]`"),
        pytest.param("inputs: {r: {pattern: a, default: 0.1}}", '3:39: jobs.a.inputs.r.default: must be text: write it in quotes, "0.1"'),
        pytest.param("inputs: {r: {default: '1'}}", "3:14: jobs.a.inputs.r.pattern: `pattern` is missing"),
        pytest.param("on: {image: {repository: t}}", "3:9: jobs.a.on: must be a list"),
        pytest.param("disk: 1GiB\ndisk: 2GiB", "4:5: jobs.a.disk: `disk` is here twice: line 3 has it already", id="a key that is there twice"),
        pytest.param("deadline: 19h", f"3:15: jobs.a.deadline: {WORK_MISSING}"),
        pytest.param("patience: 19h", f"3:15: jobs.a.patience: {WORK_MISSING}"),
        pytest.param("estimated_duration: 2h\ndeadline: 9h\npatience: 1h", "5:15: jobs.a.patience: a job with a `deadline` waits for as long as that allows: give one of the two"),
        pytest.param("total_steps: 900", "3:18: jobs.a.total_steps: only checkpoints say which step a training has reached: add `checkpoint`"),
        pytest.param("policy: greedy", "3:13: jobs.a.policy: `policy` is for a job with a `deadline` or with `patience`: add one of them"),
        pytest.param("padding: 0.2", "3:14: jobs.a.padding: `padding` is for a job with a `deadline` or with `patience`: add one of them"),
        pytest.param("estimated_duration: 2h\ndeadline: 9h\npolicy: gredy", "5:13: jobs.a.policy: `gredy` is none of cheapest, uniform-progress, greedy, on-demand-first; did you mean `greedy`?"),
        pytest.param("estimated_duration: 2h\ndeadline: 9h\npadding: 20", "5:14: jobs.a.padding: must be 1 or less"),
        pytest.param("estimated_duration: 20h\ndeadline: 19h30m", "4:15: jobs.a.deadline: 19h30m is shorter than estimated_duration (20h)", id="a deadline before the estimate"),
    ],
)  # fmt: skip
def test_a_bad_key_or_value_is_named_with_its_place(lines, problem):
    assert problems_of_job(*lines.splitlines()) == [problem]


@pytest.mark.parametrize(
    ("trigger", "problem"),
    [
        pytest.param("github: {repository: acme, event: release}", "jobs.a.on[0].github.repository: `acme` is not a GitHub repository: write it like owner/name"),
        pytest.param("github: {repository: a/b, event: psh}", "jobs.a.on[0].github: unknown event `psh`; did you mean `push`?"),
        pytest.param("github: {repository: a/b, event: pull_request}", "jobs.a.on[0].github: unknown event `pull_request`; known are `push`, `workflow_dispatch`, `repository_dispatch`, `workflow_run`, `release`, `package`"),
        pytest.param("github: {repository: a/b}", "jobs.a.on[0].github: `event` is missing: one of push, workflow_dispatch, repository_dispatch, workflow_run, release, package"),
        pytest.param("github: {repository: a/b, event: push, branchs: [a]}", "jobs.a.on[0].github.branchs: unknown key `branchs`; did you mean `branches`?"),
        pytest.param("github: {repository: a/b, event: release, paths: [a]}", "jobs.a.on[0].github.paths: `paths` is for push; release has no such filter"),
        pytest.param("github: {repository: a/b, event: package, branches: [a]}", "jobs.a.on[0].github.branches: `branches` is for push and workflow_run; package has no such filter"),
        pytest.param("github: {repository: a/b, event: release, wait_for_image: {}}", "jobs.a.on[0].github.wait_for_image: `wait_for_image` is for push; release has no such filter"),
        pytest.param("github: {repository: a/b, event: push, paths: []}", "jobs.a.on[0].github.paths: is empty: leave the key out, or give it something"),
        pytest.param("github: {repository: a/b, event: push, paths: ['']}", "jobs.a.on[0].github.paths[0]: is empty: leave the key out, or give it something"),
        pytest.param("github: {repository: a/b, event: push, paths: ['!a']}", "jobs.a.on[0].github.paths: every pattern excludes: add one that includes, for example `**`"),
        pytest.param("github: {repository: a/b, event: push, wait_for_image: {repository: t, tag: latest}}", "jobs.a.on[0].github.wait_for_image.tag: `latest` names no commit: an older image has it already; use `{sha}` or `{short_sha}`"),
        pytest.param("github: {repository: a/b, event: push, wait_for_image: {repository: t, tag: '{ref}'}}", "jobs.a.on[0].github.wait_for_image.tag: unknown placeholder `{ref}`: `{sha}` and `{short_sha}` are known here"),
        pytest.param("github: {repository: a/b, event: workflow_run}", "jobs.a.on[0].github.workflows: `workflows` is missing"),
        pytest.param("github: {repository: a/b, event: workflow_run, workflows: []}", "jobs.a.on[0].github.workflows: is empty: leave the key out, or give it something"),
        pytest.param("github: {repository: a/b, event: workflow_run, workflows: [a], run_events: [pull_requests]}", "jobs.a.on[0].github.run_events[0]: `pull_requests` is no event that triggers workflows; did you mean `pull_request`?"),
        pytest.param("github: {repository: a/b, event: push, run_events: [push]}", "jobs.a.on[0].github.run_events: `run_events` is for workflow_run; push has no such filter"),
        pytest.param("image: {repository: t, tag: '{short_sha}'}", "jobs.a.on[0].image.tag: unknown placeholder `{short_sha}`: `{sha}` is known here"),
        pytest.param("image: {repository: t, tag: '{sha'}", "jobs.a.on[0].image.tag: `{sha` has a brace without its partner"),
        pytest.param("image: {repository: 1.dkr.ecr.us-east-1.amazonaws.com/t}", "jobs.a.on[0].image.repository: `1.dkr.ecr.us-east-1.amazonaws.com/t`: give the repository's name alone, without the registry's address"),
        pytest.param("image: {repository: Trainer}", "jobs.a.on[0].image.repository: `Trainer` is not an ECR repository's name"),
        pytest.param("s3: {bucket: Data}", "jobs.a.on[0].s3.bucket: `Data` is not an S3 bucket's name"),
        pytest.param("s3: {bucket: data, prefix: /a}", "jobs.a.on[0].s3.prefix: `/a`: S3 keys do not start with a slash or a scheme"),
        pytest.param("s3: {bucket: data, suffix: '*.json'}", "jobs.a.on[0].s3.suffix: `*.json`: the text is literal, `*` has no meaning in it"),
        pytest.param("s3: {bucket: data, sufix: .json}", "jobs.a.on[0].s3.sufix: unknown key `sufix`; did you mean `suffix`?"),
        pytest.param("github: {}, s3: {bucket: data}", "jobs.a.on[0]: a trigger has exactly one of `github`, `image`, `s3`, `eventbridge`, `schedule` and `sns`: write each as an item of its own"),
        pytest.param("", "jobs.a.on[0]: a trigger has exactly one of `github`, `image`, `s3`, `eventbridge`, `schedule` and `sns`: write each as an item of its own"),
        pytest.param("s3: ", "jobs.a.on[0]: a trigger has exactly one of `github`, `image`, `s3`, `eventbridge`, `schedule` and `sns`: write each as an item of its own"),
        pytest.param("eventbridge: {}", "jobs.a.on[0].eventbridge.pattern: `pattern` is missing"),
        pytest.param("eventbridge: {pattern: {source: [aws.ecs]}}", "jobs.a.on[0].eventbridge.pattern: `aws.ecs` cannot be watched: every job starts tasks, whose events would start the next one"),
        pytest.param("eventbridge: {pattern: {source: a}}", "jobs.a.on[0].eventbridge.pattern: `source` must be a list of names, for example [com.acme.features]: other events are nobody's"),
        pytest.param("eventbridge: {pattern: {source: [a]}, inputs: {rows: detail.rows}}", "jobs.a.on[0].eventbridge.inputs.rows: `rows` is no input: declare it under `inputs` of the job"),
        pytest.param("eventbridge: {pattern: {source: [a]}, inputs: {rows: 'detail[0]'}}", "jobs.a.on[0].eventbridge.inputs.rows: `detail[0]` is not a path within the event: write it like detail.epochs"),
        pytest.param("eventbridge: {pattern: {source: [a]}, input: {}}", "jobs.a.on[0].eventbridge.input: unknown key `input`; did you mean `inputs`?"),
        pytest.param("schedule: {expression: 'cron(0 6 * * MON *)'}", "jobs.a.on[0].schedule.expression: one of day of the month and day of the week must be `?`, the other one says the days"),
        pytest.param("schedule: {expression: rate(1 hour), time_zone: 'Berlin!'}", "jobs.a.on[0].schedule.time_zone: `Berlin!` is not a time zone: write it like Europe/Berlin or UTC"),
        pytest.param("schedule: {expression: rate(1 hour), missed: ignore}", "jobs.a.on[0].schedule.missed: `ignore` is none of skip, catch_up"),
        pytest.param("sns: {}", "jobs.a.on[0].sns.topic: `topic` is missing"),
        pytest.param("sns: {topic: features}", "jobs.a.on[0].sns.topic: `features` is no topic of SNS: write its ARN, like arn:aws:sns:eu-central-1:111122223333:features"),
        pytest.param("sns: {topic: 'arn:aws:sns:eu-central-1:111122223333:features.fifo'}", "jobs.a.on[0].sns.topic: `arn:aws:sns:eu-central-1:111122223333:features.fifo` is a FIFO topic, and the queue of the stack is none: use a standard topic"),
        pytest.param("sns: {topic: 'arn:aws:sns:eu-central-1:111122223333:features', inputs: {rows: message.rows}}", "jobs.a.on[0].sns.inputs.rows: `rows` is no input: declare it under `inputs` of the job"),
        pytest.param("sns: {topic: 'arn:aws:sns:eu-central-1:111122223333:features', inputs: {rows: rows}}", "jobs.a.on[0].sns.inputs.rows: `rows` begins with none of message, text, subject, attributes: write message.epochs for `epochs` in its JSON"),
        pytest.param("gitlab: {}", "jobs.a.on[0].gitlab: unknown key `gitlab`; did you mean `github`?"),
    ],
)  # fmt: skip
def test_a_bad_trigger_is_told_what_its_source_knows(trigger, problem):
    found = problems_of_job(f"on: [{{{trigger}}}]")

    assert problem in [each.split(": ", 1)[1] for each in found]


ACK = "target: ack, kubernetes: {image: i, %s}, accelerator: {gpu: {%s}}"
ACS = "target: acs, kubernetes: {image: i, vcpus: 4, memory: 8GiB, %s}, accelerator: {gpu: {%s}}"


@pytest.mark.parametrize(
    ("job", "problems"),
    [
        pytest.param("kubernetes: {image: i}, accelerator: {gpu: {}}", ["a.task_definition: `task_definition` is missing: with `kubernetes` alone, `target` is kubernetes, ack or acs"]),
        pytest.param("accelerator: {gpu: {}}", ["a.task_definition: `task_definition` is missing"]),
        pytest.param("target: ack, accelerator: {gpu: {}}", ["a.kubernetes: `kubernetes` is missing: ack needs its image at least"]),
        pytest.param("target: ack, kubernetes: {}, accelerator: {gpu: {}}", ["a.kubernetes.image: `image` is missing"]),
        pytest.param("target: ack, kubernetes: {image: i}, accelerator: {neuron: {devices: 1}}", ["a.accelerator: ack has NVIDIA GPUs only: give `gpu`"]),
        pytest.param(ACK % ("imge: j", ""), ["a.kubernetes.imge: unknown key `imge`; did you mean `image`?"]),
        pytest.param(ACK % ("namespace: kube-system", ""), ["a.kubernetes.namespace: no definition chooses its namespace: it is the parameter KubernetesNamespace of the stack"]),
        pytest.param(ACK % ("gpu_sharing: core-mem", ""), ["a.kubernetes.gpu_sharing: `core-mem` is none of exclusive, cgpu, core_mem, share, mps; did you mean `core_mem`?"]),
        pytest.param(ACK % ("compute_class: gpu-hpm", ""), ["a.kubernetes.compute_class: `gpu-hpm` is none of gpu, gpu-hpn; did you mean `gpu-hpn`?"]),
        pytest.param(ACK % ("memory: 16Gi", ""), ["a.kubernetes.memory: `16Gi` is not in a binary unit: write memory in GiB or MiB, not Gi"]),
        pytest.param(ACK % ("vcpus: four", ""), ["a.kubernetes.vcpus: `four` is not a number of vCPUs: write it like 4 or 0.5"]),
        pytest.param(ACK % ("vcpus: true", ""), ["a.kubernetes.vcpus: `True` is not a number of vCPUs: write it like 4 or 0.5"]),
        pytest.param(ACK % ("vcpus: 0", ""), ["a.kubernetes.vcpus: `0` is not a number of vCPUs: it is above 0, in steps of 0.001"]),
        pytest.param(ACK % ("vcpus: 0.0005", ""), ["a.kubernetes.vcpus: `0.0005` is not a number of vCPUs: it is above 0, in steps of 0.001"]),
        pytest.param(ACK % ("working_directory: root", ""), ["a.kubernetes.working_directory: `root` is not an absolute path"]),
        pytest.param(ACK % ("service_account: Train", ""), ["a.kubernetes.service_account: `Train` is not an object's name (lower-case letters, digits, - and .)"]),
        pytest.param(ACK % ("service_account_token: true", ""), ["a.kubernetes.service_account_token: `service_account_token` is the token of a service account: name it in `service_account`"]),
        pytest.param(ACK % ("pod_security: privileged", ""), ["a.kubernetes.pod_security: `privileged` is none of baseline, restricted"]),
        pytest.param(ACK % ("run_as_user: 0", ""), ["a.kubernetes.run_as_user: must be 1 or more"]),
        pytest.param(ACK % ("labels: {app: 1}", ""), ['a.kubernetes.labels.app: must be text: write it in quotes, "1"']),
        pytest.param(ACK % ("labels: {app: Tesla T4}", ""), ["a.kubernetes.labels.app: `Tesla T4` is not a label's value (1 to 63 letters, digits, -, _ and ., no space)"]),
        pytest.param(ACK % ("labels: {-a: b}", ""), ["a.kubernetes.labels.-a: `-a` is not a label's key: write it like app or example.com/app"]),
        pytest.param(ACK % ("labels: {A_/a: b}", ""), ["a.kubernetes.labels.A_/a: `A_/a` is not a label's key: write it like app or example.com/app"]),
        pytest.param(ACK % ("labels: {relaunch/job: b}", ""), ["a.kubernetes.labels.relaunch/job: `relaunch/job` is taken: Kubernetes or Relaunch sets it"]),
        pytest.param(ACK % ("labels: {aliyun.com/gpu-count: '2'}", ""), ["a.kubernetes.labels: `aliyun.com/gpu-count` is taken: Relaunch sets it"]),
        pytest.param(ACK % ("region: Beijing", ""), ["a.kubernetes.region: `Beijing` is not a region of Alibaba Cloud: write it like cn-beijing"]),
        pytest.param(ACK % ("region: cn-bejing", "memory: 2GiB, compute_percent: 30"), ["a.kubernetes.region: ACK has no shares of compute in the region cn-bejing of Alibaba Cloud; did you mean cn-beijing?"]),
        pytest.param(ACK % ("", "memory: 2GiB, compute_percent: 17"), ["a.accelerator.gpu.compute_percent: 17 percent cannot be submitted: ACK takes multiples of 5 from 5 to 100, so give 15 or 20"]),
        pytest.param(ACK % ("gpu_sharing: cgpu", "memory: 2GiB, compute_percent: 7"), ["a.kubernetes.gpu_sharing: `cgpu` gives no share of compute: leave `gpu_sharing` out, or leave `compute_percent` out", "a.accelerator.gpu.compute_percent: 7 percent cannot be submitted: ACK takes multiples of 5 from 5 to 100, so give 5 or 10"]),
        pytest.param(ACS % ("", ""), ["a.kubernetes.gpu_model: `gpu_model` is missing: ACS needs the model of the GPU, such as T4"]),
        pytest.param(ACS % ("gpu_model: T4, gpu_driver: 535.161", ""), ['a.kubernetes.gpu_driver: must be text: write it in quotes, "535.161"']),
        pytest.param(ACS % ("gpu_model: T4, gpu_driver: newest", ""), ["a.kubernetes.gpu_driver: `newest` is not a driver version: write it like 535.161.08"]),
        pytest.param(ACS % ("gpu_model: T4, gpu_driver: 470.82.01, strict: true", ""), ["a.kubernetes.gpu_driver: driver 470.82.01 is not in ACS's list for T4 (580.95.05-open, 570.133.20, 535.161.08, 525.105.17; 2026-09-24): name another one, or leave `strict` out"]),
        pytest.param(ACS % ("gpu_model: T4", "memory: 2GiB, compute_percent: 30"), ["a.accelerator.gpu.compute_percent: compute class gpu of ACS has whole GPUs only: leave it out, or set `compute_class` to gpu-hpn"]),
    ],
)  # fmt: skip
def test_a_definition_for_kubernetes_is_held_against_the_rules_of_its_target(job, problems):
    found = problems_of(f"jobs: {{a: {{{job}}}}}")

    assert [each.split(": jobs.", 1)[1] for each in found] == problems


@pytest.mark.parametrize(
    ("accelerator", "problem"),
    [
        pytest.param("{}", "4:18: jobs.a.accelerator: give `gpu`, `neuron` or `instance_types`"),
        pytest.param("{gpu: {}, neuron: {devices: 1}}", "4:18: jobs.a.accelerator: give `gpu` or `neuron`, not both: no machine has both"),
        pytest.param("{neuron: {}}", "4:27: jobs.a.accelerator.neuron: give exactly one of `devices` and `cores`"),
        pytest.param("{neuron: {devices: 1, cores: 2}}", "4:27: jobs.a.accelerator.neuron: give exactly one of `devices` and `cores`"),
        pytest.param("{neuron: {models: [Trainium]}}", "4:27: jobs.a.accelerator.neuron: give exactly one of `devices` and `cores`"),
        pytest.param("{neuron: {devices: 1, model: Trainium}}", "4:40: jobs.a.accelerator.neuron.model: unknown key `model`; did you mean `models`?"),
        pytest.param("{neuron: {devices: 1, models: [Trainium9]}}", "4:49: jobs.a.accelerator.neuron.models[0]: unknown Neuron model `Trainium9`; did you mean `Trainium`?"),
        pytest.param("{neuron: {devices: 1, purpose: serving}}", "4:49: jobs.a.accelerator.neuron.purpose: `serving` is none of training, inference"),
        pytest.param("{neuron: {devices: 1, models: [Inferentia2]}}", "4:27: jobs.a.accelerator.neuron: Inferentia2 serves inference only, and `purpose` is training unless it is given"),
        pytest.param("{gpu: {count: 0}}", "4:32: jobs.a.accelerator.gpu.count: must be 1 or more"),
        pytest.param("{gpu: {memory: 16GB}}", "4:33: jobs.a.accelerator.gpu.memory: `16GB` is not in a binary unit: write memory in GiB or MiB, not GB (16GB is 14.9GiB)"),
        pytest.param("{gpu: {memory: 16Gi}}", "4:33: jobs.a.accelerator.gpu.memory: `16Gi` is not in a binary unit: write memory in GiB or MiB, not Gi"),
        pytest.param("{gpu: {memory: 0.3MiB}}", "4:33: jobs.a.accelerator.gpu.memory: `0.3MiB` is not a whole number of MiB above 0"),
        pytest.param("{gpu: {models: [a10g]}}", "4:34: jobs.a.accelerator.gpu.models[0]: unknown GPU model `a10g`; did you mean `A10G`?"),
        pytest.param("{gpu: {models: [A10]}}", "4:34: jobs.a.accelerator.gpu.models[0]: unknown GPU model `A10`; did you mean `A10G`?"),
        pytest.param("{gpu: {models: [Trainium]}}", "4:34: jobs.a.accelerator.gpu.models[0]: unknown GPU model `Trainium`; the models are A10G, L4"),
        pytest.param("{gpu: {compute_percent: 30}}", "4:24: jobs.a.accelerator.gpu: a share of a GPU needs its memory too: give `memory`, like 2GiB"),
        pytest.param("{gpu: {memory: 2GiB, compute_percent: 30, count: 2}}", "4:24: jobs.a.accelerator.gpu: a share is of one GPU: leave `count` out, or ask for 2 whole ones"),
        pytest.param("{gpu: {memory: 2GiB, compute_percent: 0}}", "4:56: jobs.a.accelerator.gpu.compute_percent: must be 1 or more"),
        pytest.param("{gpu: {memory: 2GiB, compute_percent: 101}}", "4:56: jobs.a.accelerator.gpu.compute_percent: must be 100 or less"),
        pytest.param("{gpu: {memory: 2GiB, compute_percent: 30.5}}", "4:56: jobs.a.accelerator.gpu.compute_percent: must be a whole number, not `30.5`"),
        pytest.param("{gpu: {memory: 2GB, compute_percent: 30}}", "4:33: jobs.a.accelerator.gpu.memory: `2GB` is not in a binary unit: write memory in GiB or MiB, not GB (2GB is 1.863GiB)"),
        pytest.param("{gpu: {memory: 2GiB, isolation: required}}", "4:24: jobs.a.accelerator.gpu: isolation is for a share of a GPU: give `compute_percent` and `memory` too"),
        pytest.param("{gpu: {memory: 2GiB, compute_percent: 30, isolation: strict}}", "4:71: jobs.a.accelerator.gpu.isolation: `strict` is none of best-effort, required"),
        pytest.param("{gpu: {memory: 2GiB, compute_percnt: 30}}", "4:39: jobs.a.accelerator.gpu.compute_percnt: unknown key `compute_percnt`; did you mean `compute_percent`?"),
        pytest.param("{gpu: {compute_capability: 8}}", "4:45: jobs.a.accelerator.gpu.compute_capability: `8` is no compute capability: write it like 8.0, or bf16"),
        pytest.param("{gpu: {compute_capability: fp8}}", "4:45: jobs.a.accelerator.gpu.compute_capability: `fp8` is no compute capability: write it like 8.0, or bf16"),
        pytest.param("{gpu: {interconnect: infiniband}}", "4:39: jobs.a.accelerator.gpu.interconnect: `infiniband` is none of efa, nvlink"),
        pytest.param("{gpu: {interconnect: efa}}", "4:39: jobs.a.accelerator.gpu.interconnect: Relaunch attaches no Elastic Fabric Adapter to its machines, so that a type that may have one would only cost more: leave it out; the ranks of a job with `nodes` meet by TCP"),
        pytest.param("{gpu: {driver: 570}}", "4:25: jobs.a.accelerator.gpu.driver: on ECS no machine can be chosen by its driver, the AMI brings it: set the AMI of the capacity provider; on ACS give `kubernetes.gpu_driver`"),
        pytest.param("{gpu: {cout: 2}}", "4:25: jobs.a.accelerator.gpu.cout: unknown key `cout`; did you mean `count`?"),
        pytest.param("{instance_types: [G5.xlarge]}", "4:36: jobs.a.accelerator.instance_types[0]: `G5.xlarge`: instance types are written in lower case: `g5.xlarge`"),
        pytest.param("{instance_types: [trn1.2xlarg]}", "4:36: jobs.a.accelerator.instance_types[0]: unknown instance type `trn1.2xlarg`; did you mean `trn1.2xlarge`?"),
        pytest.param(f"{{instance_types: [{'x, ' * 200}x]}}", "4:35: jobs.a.accelerator.instance_types: has more than 200 items"),
        pytest.param("{instance_types: []}", "4:35: jobs.a.accelerator.instance_types: is empty: leave the key out, or give it something"),
        pytest.param("gpu", "4:18: jobs.a.accelerator: must be a mapping of keys to values, not `gpu`"),
    ],
)  # fmt: skip
def test_a_bad_accelerator_is_told_what_there_is(accelerator, problem):
    assert problems_of_job(accelerator=accelerator) == [problem]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("", ["f:1:1: the file is empty: it needs the key `jobs`"], id="empty"),
        pytest.param("# later", ["f:1:1: the file is empty: it needs the key `jobs`"], id="comments"),
        pytest.param("jobs", ["f:1:1: must be a mapping with the key `jobs`"], id="word"),
        pytest.param("- jobs", ["f:1:1: must be a mapping with the key `jobs`"], id="list"),
        pytest.param("jobs: 3", ["f:1:7: jobs: must be a mapping of names to job definitions"], id="number"),
        pytest.param("jobs: {}", ["f:1:7: jobs: is empty: it names no job definition"], id="no-jobs"),
        pytest.param("jobs:", ["f:1:1: jobs: has no value: give it one or leave the key out"], id="null"),
        pytest.param("job: {}", ["f:1:1: job: unknown key `job`; did you mean `jobs`?", "f:1:1: jobs: `jobs` is missing"], id="typo"),
        pytest.param("jobs: {a: 1}", ["f:1:11: jobs.a: must be a mapping of keys to values, not `1`"], id="job-is-number"),
        pytest.param("a: [", ["f:1:5: not valid YAML: while parsing a flow node, expected the node content, but found '<stream end>'"], id="unclosed"),
        pytest.param("jobs:\n\ta: 1", ["f:2:1: not valid YAML: while scanning for the next token, found character '\\t' that cannot start any token (YAML is indented with spaces, not tabs)"], id="tab"),
        pytest.param("a: 1\n---\nb: 1", ["f:2:1: not valid YAML: expected a single document in the stream, but found another document"], id="two-documents"),
        pytest.param("a: \x00", ["f:1:4: not valid YAML: it may not contain U+0000"], id="control-character"),
        pytest.param("jobs: !job {}", ["f:1:7: jobs: the tag !job is not supported: write the plain value"], id="tag"),
        pytest.param("jobs: !!int x", ["f:1:7: jobs: is not a number"], id="wrong-tag"),
        pytest.param("jobs: &a {x: *a}", ["f:1:7: jobs.x: anchors and aliases here expand without end"], id="cycle"),
        pytest.param("jobs:\n  <<: {}", ["f:2:3: jobs: merge keys (`<<`) are not supported: repeat the keys"], id="merge"),
        pytest.param("jobs:\n  ? [a]\n  : 1", ["f:2:5: jobs: a key must be a single word"], id="complex-key"),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_refused_in_words(text, problems):
    found = problems_of(text)

    assert [problem for problem in problems if problem not in found] == []


def test_aliases_that_multiply_are_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7)]

    assert any("expand without end" in problem for problem in problems_of("\n".join(lines)))


@pytest.mark.parametrize("name", ["Resnet", "1a", "a_b", "a" * 49, ""])
def test_a_bad_name_is_refused(name):
    found = problems_of(f'jobs: {{"{name}": {{task_definition: t, accelerator: {{gpu: {{}}}}}}}}')

    assert "1 to 48 lower-case letters, digits and -, a letter first" in found[0]
    assert len(found) == 1


def test_a_revision_in_the_family_is_refused():
    (problem,) = problems_of("jobs: {a: {task_definition: 'trainer:3', accelerator: {gpu: {}}}}")

    assert problem.endswith("`trainer:3`: give the family alone, without a revision: the newest ACTIVE one is used")


def test_every_problem_of_a_file_is_told_at_once_in_its_order():
    text = """
extra: 1
jobs:
  first:
    accelerator: {gpu: {memory: 16GB}, neuron: {devices: 0, cores: 1}}
    deadline: 1h
    estimated_duration: 2h
    on:
      - s3: {bucket: acme, prefix: ch}
  second:
    task_definition: trainer
    accelerator: {gpu: {}}
    checkpoint: s3://acme/check/
    on: [{s3: {bucket: acme, prefix: check/deeper}}]
"""
    found = [problem.split(": ")[1] for problem in problems_of(text)]

    assert found == [
        "extra",
        "jobs.first.task_definition",
        "jobs.first.accelerator",
        "jobs.first.accelerator.gpu.memory",
        "jobs.first.accelerator.neuron",
        "jobs.first.accelerator.neuron.devices",
        "jobs.first.deadline",
        "jobs.second.on[0].s3.prefix",
    ]


def test_after_two_hundred_problems_no_further_definition_is_read():
    jobs = "".join(f"  job-{number}: {{}}\n" for number in range(1_000))

    found = problems_of(f"jobs:\n{jobs}")

    assert len(found) < 210
    assert found[-1].endswith("not read: more than 200 problems are before it")
