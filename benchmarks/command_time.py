"""The `relaunch` command in the local world, beside bare boto3 in the same interpreter.

Each case is a fresh process, from its start to its end, in processor time: user and system. Beside a command stand
two short programs: boto3 making the command's call of the jobs table alone, and boto3 making all of its calls, whose
clients are most of the difference. The name of the table is kept once the first round, which does not count, has asked.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from unittest.mock import patch

import boto3

from benchmarks.errors import NotMeasurableError
from benchmarks.local_world_time import run_pushed_job
from benchmarks.session import Session, rotated
from benchmarks.tables import Table, median
from relaunch.bootstrap import make_dependencies
from relaunch.settings import Settings
from relaunch_local.stack.deployment import STACK
from relaunch_local.stack.local_world import LocalWorldSettings, local_world

_COMMAND = "from relaunch_cli.main import main; main()"
_BARE = "bare interpreter"
_TABLE = """
import boto3, os, sys
client, table = boto3.client("dynamodb"), os.environ["TABLE"]
"""
_LISTED = """
names = {":listing": {"S": "JOBS"}}
client.query(
    TableName=table, IndexName="listing", KeyConditionExpression="listing = :listing", ScanIndexForward=False,
    ExpressionAttributeValues=names, ProjectionExpression="pk, accepted_at, summary", Limit=101,
)
"""
_JOB = """
key = {":pk": {"S": f"JOB#{os.environ['JOB']}"}}
client.query(
    TableName=table, KeyConditionExpression="pk = :pk", ExpressionAttributeValues=key, ConsistentRead=True
)
"""
_DEFINITION = """
def get(pk, sk):
    return client.get_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": sk}}, ConsistentRead=True)
get("DEFINITION", os.environ["DEFINITION"])
"""
_STACK = """
boto3.client("cloudformation").describe_stacks(StackName=os.environ["RELAUNCH_STACK"])
"""
_PLANNED = """
from datetime import datetime, timezone
key = {":pk": {"S": "CAPACITY"}}
client.query(TableName=table, KeyConditionExpression="pk = :pk", ExpressionAttributeValues=key, ConsistentRead=True)
get("OFFERINGS", "SNAPSHOT")
types, now = ["g4dn.xlarge", "g5.xlarge", "g6.xlarge"], datetime.now(timezone.utc)
boto3.client("ec2").describe_spot_price_history(InstanceTypes=types, StartTime=now, ProductDescriptions=["Linux/UNIX"])
boto3.client("ecs").describe_task_definition(taskDefinition="relaunch-trainer")
boto3.client("ecr").batch_get_image(repositoryName="trainer", imageIds=[{"imageTag": "latest"}])
boto3.client("s3").head_bucket(Bucket=os.environ["BUCKET"])
boto3.client("s3").get_bucket_encryption(Bucket=os.environ["BUCKET"])
"""
_LOGS = """
definition = boto3.client("ecs").describe_task_definition(taskDefinition=os.environ["REVISION"])["taskDefinition"]
(container,) = definition["containerDefinitions"]
options = container["logConfiguration"]["options"]
stream = f"{options['awslogs-stream-prefix']}/{container['name']}/{os.environ['TASK'].rpartition('/')[2]}"
boto3.client("logs").get_log_events(logGroupName=options["awslogs-group"], logStreamName=stream, startFromHead=True)
"""
_COLUMNS = (*("command", "median ms", "least ms", "same query ms", "x same query", "same calls ms", "x same calls"),)


def measure(session: Session) -> list[Table]:
    """Run a job in a local world, then measure the command.

    Raises:
        NotMeasurableError: a process failed, or no job ran.
    """
    with (
        TemporaryDirectory() as cache,
        local_world(LocalWorldSettings()) as local,
        patch.dict(os.environ, local.environment()),
    ):
        settings = Settings.from_stack_outputs(local.deployment.outputs)
        job = run_pushed_job(local, make_dependencies(settings, boto3.Session()))
        bucket = (job.definition.checkpoint_uri or "").removeprefix("s3://").partition("/")[0]
        attempt = job.current_attempt
        task = {"REVISION": job.revision.arn, "TASK": attempt.task_id or ""}
        facts = task | {"TABLE": settings.table, "JOB": job.job_id, "DEFINITION": job.definition.name, "BUCKET": bucket}
        environment = {**os.environ, "RELAUNCH_STACK": STACK, "XDG_CACHE_HOME": cache, **facts}
        samples = session.collect(partial(_measure_round, _cases(job.job_id, job.definition.name), environment))
    rows = [_row(name, samples) for name in ("ps", "logs", "show", "explain", "plan")]
    bare = median(samples[_BARE])
    return [
        Table(
            "A command, processor time of a fresh process",
            _COLUMNS,
            rows,
            (f"An interpreter that does nothing: {bare:.0f} ms, which is in every figure.",),
        )
    ]


def _cases(job_id: str, definition: str) -> dict[str, list[str]]:
    """Return the arguments of the interpreter for each case."""
    queries = {
        "ps": ((_LISTED,), ()),
        "logs": ((_JOB,), (_LOGS,)),
        "show": ((_JOB,), (_DEFINITION, _STACK)),
        "explain": ((_JOB,), (_STACK,)),
        "plan": ((_DEFINITION,), (_PLANNED, _STACK)),
    }
    arguments = {"ps": ["--all"], "logs": [job_id], "show": [job_id], "explain": [job_id], "plan": [definition]}
    cases = {_BARE: ["-c", "pass"]}
    for name, (query, others) in queries.items():
        cases[name] = ["-c", _COMMAND, name, *arguments[name]]
        cases[f"{name}, same query"] = ["-c", "".join((_TABLE, *query))]
        cases[f"{name}, same calls"] = ["-c", "".join((_TABLE, *query, *others))]
    return cases


def _measure_round(cases: Mapping[str, list[str]], environment: Mapping[str, str], number: int) -> Mapping[str, float]:
    return {name: _run(name, cases[name], environment) for name in rotated(list(cases), number)}


def _run(name: str, arguments: list[str], environment: Mapping[str, str]) -> float:
    """Return the milliseconds of processor time that a process takes, with those of the system."""
    before = getrusage(RUSAGE_CHILDREN)
    ended = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    after = getrusage(RUSAGE_CHILDREN)
    if ended.returncode:
        raise NotMeasurableError(f"{name} ended with {ended.returncode}: {ended.stderr[-500:]}")
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def _row(name: str, samples: Mapping[str, list[float]]) -> tuple[str | float, ...]:
    took = median(samples[name])
    floors = [median(samples[f"{name}, {each}"]) for each in ("same query", "same calls")]
    return f"relaunch {name}", took, min(samples[name]), *(value for each in floors for value in (each, took / each))
