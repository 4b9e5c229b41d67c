"""The types of values in the block `kubernetes` of a job definition."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, StringConstraints

from relaunch.adapters.definition_file.values import check_text, text_schema
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.pod_fragment import APPARMOR, IDENTITIES, OF_IDENTITIES

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_SUBDOMAIN = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_IMAGE = r"[A-Za-z0-9][A-Za-z0-9.:/_-]*(?:@sha256:[0-9a-f]{64})?"
_GPU_RESOURCE = r"nvidia\.com/[a-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_REGION = r"[a-z]{2,}(?:-[a-z0-9]+)+"
_MOUNT_PATH = r"/[^\x00:/][^\x00:]*"
_SUB_PATH = r"(?!/)(?!(?:.*/)?\.\.(?:/|$))[^\x00]+"
_KEY_OF_SECRET = r"[A-Za-z0-9._-]+"  # noqa: S105 - a pattern
_SERVICES = frozenset({"eks", "gke", "aks", "k8s"})
_OWN_LABEL_PREFIXES = ("relaunch", "batch.kubernetes.io", APPARMOR)
_OWN_LABELS = ("job-name", "controller-uid", "app.kubernetes.io/managed-by")


def _check_qualified_name(value: str) -> str:
    prefix, slash, name = value.rpartition("/")
    is_prefixed = not slash or (len(prefix) <= 253 and re.fullmatch(_SUBDOMAIN, prefix))
    if not is_prefixed or re.fullmatch(_LABEL, name) is None:
        raise ValueError(f"`{value}` is not a label's key: write it like app or example.com/app")
    return value


def _check_own(value: str) -> str:
    if value.rpartition("/")[0] in _OWN_LABEL_PREFIXES or value in _OWN_LABELS:
        raise ValueError(f"`{value}` is taken: Kubernetes or Relaunch sets it")
    return value


def _check_identity(value: str) -> str:
    if value in IDENTITIES:
        raise ValueError(f"`{value}` {OF_IDENTITIES}")
    return value


def _check_target(value: object) -> object:
    """Reject the names of services, one of which is nearly that of another target."""
    if isinstance(value, str) and value in _SERVICES:
        raise ValueError(f"`{value}` is a cluster like any other: write `{Target.KUBERNETES}`")
    return value


TARGET_NAME = BeforeValidator(_check_target)
ContainerImage = Annotated[
    str,
    check_text(_IMAGE, "a container image: write it like registry.example.com/team/trainer:v1"),
    text_schema(_IMAGE),
]
WorkingDirectory = Annotated[str, check_text(r"/[^\x00]*", "an absolute path"), text_schema("/.*")]
MountPath = Annotated[
    str,
    StringConstraints(max_length=1000),
    check_text(_MOUNT_PATH, "an absolute path below the root, without `:`"),
    text_schema(_MOUNT_PATH),
]
SubPath = Annotated[
    str,
    StringConstraints(max_length=1000),
    check_text(_SUB_PATH, "a relative path without `..`"),
    text_schema(_SUB_PATH),
]
SecretKeyName = Annotated[
    str,
    StringConstraints(max_length=253),
    check_text(_KEY_OF_SECRET, "a key of a Secret (letters, digits, -, _ and .)"),
    text_schema(_KEY_OF_SECRET),
]
NodeLabelKey = Annotated[str, AfterValidator(_check_qualified_name)]
LabelKey = Annotated[str, AfterValidator(_check_qualified_name), AfterValidator(_check_own)]
AnnotationKey = Annotated[
    str, AfterValidator(_check_qualified_name), AfterValidator(_check_own), AfterValidator(_check_identity)
]
LabelValue = Annotated[
    str,
    check_text(_LABEL, "a label's value (1 to 63 letters, digits, -, _ and ., no space)"),
    text_schema(_LABEL),
]
ObjectName = Annotated[
    str,
    StringConstraints(max_length=253),
    check_text(_SUBDOMAIN, "an object's name (lower-case letters, digits, - and .)"),
    text_schema(_SUBDOMAIN),
]
GpuResource = Annotated[
    str,
    check_text(_GPU_RESOURCE, "an extended resource of NVIDIA's: write it like nvidia.com/mig-1g.5gb"),
    text_schema(_GPU_RESOURCE),
]
RegionId = Annotated[
    str, check_text(_REGION, "a region of Alibaba Cloud: write it like cn-beijing"), text_schema(_REGION)
]
