"""What looks like a credential in a definition, and what does not."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.credentials import find_credential_notices, looks_like_credential
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target

# Built from parts, so that no scanner takes this file for a leak.
HF = "hf" + "_" + "QwErTyUiOpAsDfGhJkLzXcVbNm"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("A", "AKIA" + "IOSFODNN7EXAMPLE"),
        ("A", "ghp" + "_0123456789abcdefghij0123456789abcdef"),
        ("A", HF),
        ("A", "LTAI" + "5tAbCdEfGhIjKlMnOp"),
        ("A", "-----BEGIN RSA " + "PRIVATE KEY-----\nMII"),
        ("DATABASE", "postgres://ada:s3cr3t@db/x"),
        ("WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("AWS_ACCESS_KEY_ID", "XKIAIOSFODNN7EXAMPLE"),
        ("db_password", "Tr0ub4dor&3"),
    ],
)
def test_a_credential_is_known_by_its_form_or_the_name_of_its_variable(name: str, value: str) -> None:
    assert looks_like_credential(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEARNING_RATE", "0.0003"),
        ("MAX_TOKEN", "4096"),
        ("PAD_TOKEN", "<pad>"),
        ("SORT_KEY", "label_text"),
        ("SSH_KEY", "/root/.ssh/id_ed25519"),
        ("WANDB_SECRET", "arn:aws:secretsmanager:us-east-1:111122223333:secret:wandb"),
        ("TOKENIZERS_PARALLELISM", "disabled-0"),
        ("DATA", "s3://bucket/imagenet"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "C:token0123"),
    ],
)
def test_other_values_are_none(name: str, value: str) -> None:
    assert not looks_like_credential(name, value)


def test_a_notice_says_where_and_what_to_do_and_not_the_value() -> None:
    definition = make_definition(environment={"HF_TOKEN": HF, "A": "b"}, command=("train", f"--token={HF}"))

    (on_ecs,) = find_credential_notices(definition)
    (on_ack,) = find_credential_notices(replace(definition, target=Target.ACK))

    assert on_ecs == (
        "what looks like a credential is in `environment.HF_TOKEN`, `command[1]`: it is stored with every job and "
        "shown to all who may read one; put it into `secrets` of the task definition's container"
    )
    assert on_ack.endswith("put it into `kubernetes.secrets`")
    assert find_credential_notices(make_definition(environment={"A": "b"})) == ()


@pytest.mark.parametrize(
    ("variable", "is_found"),
    [
        ({"name": "A", "value": HF}, True),
        ({"name": "API_KEY", "value": "0123456789abcdef"}, True),
        ({"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "api-key"}}}, False),
        ({"name": "A", "value": "b", "number": 5}, False),
    ],
)
def test_a_fragment_of_a_pod_is_looked_through(variable: dict[str, object], is_found: bool) -> None:
    pod: dict[str, object] = {"spec": {"containers": [{"name": "main", "env": [variable]}]}}
    definition = make_definition(kubernetes=KubernetesWorkload("trainer", pod=pod), target=Target.ACK)

    found = find_credential_notices(definition)

    assert [each.partition(": ")[0] for each in found] == [
        "what looks like a credential is in `kubernetes.pod`"
    ] * is_found
