"""A definition file with most of the keys that there are."""

EXAMPLE = """
jobs:
  resnet:
    task_definition: trainer              # family
    container: main
    on:
      - github: {repository: acme/vision, event: push, branches: [main], paths: ["train/**"]}
      - github: {repository: acme/vision, event: workflow_dispatch}
      - image: {repository: trainer, tag: "{sha}"}
      - s3: {bucket: acme-datasets, prefix: images/, suffix: .manifest}
    inputs:
      learning_rate: {pattern: "[0-9.e-]+", default: "0.1"}
    accelerator:
      gpu: {count: 1, memory: 16GiB}
    disk: 200GiB
    purchase: spot-then-on-demand
    checkpoint: s3://acme-checkpoints/resnet/
    estimated_duration: {on: A10G, hours: 20}
    deadline: 36h
    max_runtime: 48h
    max_running_jobs: 5
    max_failures: 2
    max_price_per_hour: 4.00
    target: ecs
"""
