#!/bin/bash
# Pulls an image by digest while the ECS agent starts, so that the first task finds its layers. Nobody waits for it:
# when it fails, the agent pulls the image itself.
set -euo pipefail

readonly image=$1
readonly registry=${image%%/*}

# A configuration of its own, so that no credentials stay on the machine.
DOCKER_CONFIG=$(mktemp --directory)
export DOCKER_CONFIG HOME=$DOCKER_CONFIG AWS_ECR_DISABLE_CACHE=true
trap 'rm --recursive --force "$DOCKER_CONFIG"' EXIT

if [[ $registry =~ ^[0-9]{12}\.dkr[.-]ecr ]]; then
  # The AMI has neither this program nor the AWS CLI; this is the smaller one.
  command -v docker-credential-ecr-login >/dev/null || dnf install --assumeyes --quiet amazon-ecr-credential-helper
  printf '{"credHelpers":{"%s":"ecr-login"}}\n' "$registry" >"$DOCKER_CONFIG/config.json"
fi
docker pull --quiet "$image"
