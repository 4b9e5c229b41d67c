"""Job definitions whose Jobs are those of Alibaba Cloud's documents on shared GPUs of ACK, and on GPU models of ACS."""

from typing import Any

from fakes.builders import make_job, make_offering_key, make_placement, make_running_attempt
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.kubernetes.manifest import build_job
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.kubernetes.rules import kubernetes_revision
from relaunch.core.launches.launch_plan import plan_launch

ACK_DEFINITION = """
jobs:
  cuda-sample:
    target: ack
    container: cuda-sample
    kubernetes:
      image: registry.cn-beijing.aliyuncs.com/ai-samples/gpushare-sample:benchmark-tensorflow-2.2.3
      working_directory: /root
      labels: {app: cuda-sample}
    command: [bash, run.sh, --num_batches=500000000, --batch_size=8]
    accelerator: {gpu: {count: 1, memory: 2GiB, compute_percent: 30}}
"""
ACS_DEFINITION = """
jobs:
  gpu-pod-with-model-and-driver:
    target: acs
    container: tensorflow-mnist
    kubernetes:
      image: registry.cn-beijing.aliyuncs.com/acs/tensorflow-mnist-sample:v1.5
      vcpus: 1
      memory: 1GiB
      gpu_model: example-model
      gpu_driver: "535.161.08"
    command: [sleep, infinity]
    accelerator: {gpu: {}}
"""


def job_of(text: str, purchase: PurchaseOption = PurchaseOption.ON_DEMAND) -> dict[str, Any]:
    """Return the manifest of the first placement of the definition in a file."""
    (definition,) = parse_definitions(text, "f.yaml", {})
    offering = make_offering_key("GPU", None, purchase)
    attempt = make_running_attempt(placement=make_placement(offering=offering))
    revision = kubernetes_revision(definition)
    job = make_job("cuda-sample-1f2e3d4c", definition=definition, revision=revision, attempt=attempt)
    return build_job(plan_launch(job), definition.target, "relaunch")
