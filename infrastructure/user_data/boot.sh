# What a machine does once, at its first boot: user data. The template puts a first line and the variables in capitals
# in front of it.
#
# cloud-init runs it as root, and the ECS agent starts when it has ended (ecs.service is After=cloud-final.service). So
# nothing here takes long, or waits for the agent or a unit that may wait for cloud-init: it would wait for itself. Only
# what the agent needs is done here, and its start is the last thing; the watchdog and the pull go on beside it.
# Whatever fails, what follows is still tried; the watchdog comes before all that can take time.
#
# assemble.py leaves the comments out of user data, which may have 16 KB.
set -u -o pipefail
readonly root=${RELAUNCH_ROOT:-}
readonly imds=${AWS_EC2_METADATA_SERVICE_ENDPOINT:-http://169.254.169.254}

uptime() {
  cut --delimiter=' ' --fields=1 "$root/proc/uptime"
}
began=$(uptime)

write() { # MODE FILE: standard input becomes the file
  mkdir --parents "$root${2%/*}"
  cat >"$root$2"
  chmod "$1" "$root$2"
}

# First of all the cluster: an agent without one joins `default`, which it makes.
# - A task without a stopTimeout has what a spot warning leaves.
# - `default` asks the registry for the image, and pulls the layers that are not there. `once` and `prefer-cached` ask
#   nobody: of a tag that moved they run the old image.
# - Tasks in awsvpc mode are as many hops away as the host: the hop limit does not keep them from the instance's role.
# - ECS_ENABLE_SPOT_INSTANCE_DRAINING stays off: draining stops no task of RunTask, and Relaunch drains by itself; the
#   instance would need the permission to change the state of every instance of the cluster.
# - ECS_ENABLE_GPU_SUPPORT is the AMI's: here it would keep the agent from waiting for the driver.
mkdir --parents "$root/etc/ecs"
cat >>"$root/etc/ecs/ecs.config" <<END
ECS_CLUSTER=$CLUSTER
ECS_CONTAINER_STOP_TIMEOUT=@stop_timeout_seconds@s
ECS_IMAGE_PULL_BEHAVIOR=default
ECS_AWSVPC_BLOCK_IMDS=true
END

write 644 /etc/relaunch/machine.env <<END
CLUSTER=$CLUSTER
ACCELERATOR=$ACCELERATOR
IDLE_MINUTES=$IDLE_MINUTES
REGISTRATION_MINUTES=$REGISTRATION_MINUTES
END
write 755 /usr/local/libexec/relaunch/watchdog <<'END'
@include watchdog.py
END
write 644 /etc/systemd/system/relaunch-watchdog.service <<'END'
@include relaunch-watchdog.service
END
write 644 /etc/systemd/system/relaunch-watchdog.timer <<'END'
@include relaunch-watchdog.timer
END
write 755 /usr/local/libexec/relaunch/pull <<'END'
@include pull.sh
END
write 644 /etc/systemd/system/relaunch-pull.service <<'END'
@include relaunch-pull.service
END
write 644 /etc/systemd/system/ecs.service.d/fabric.conf <<'END'
@include fabric.conf
END
write 644 /etc/systemd/system/ecs.service.d/times.conf <<'END'
@include times.conf
END
systemctl daemon-reload
# Enabled, for user data does not run again when the machine reboots.
systemctl enable relaunch-watchdog.timer
systemctl start --no-block relaunch-watchdog.timer

ask_imds() { # PATH [OPTION...]
  curl --silent --fail --noproxy '*' --max-time 2 --retry 5 --retry-delay 1 --retry-connrefused \
    "${@:2}" "$imds/latest/$1"
}

tag() { # KEY: prints the value of the instance's tag; fails if there is none
  [[ -n $token ]] && ask_imds "meta-data/tags/instance/$1" --header "X-aws-ec2-metadata-token: $token"
}

neuron_devices() { # prints how many there are, once it is the same for two seconds; after a minute whatever it is
  local count=-1 previous tries=0 devices
  shopt -s nullglob
  while
    previous=$count
    devices=("$root"/dev/neuron[0-9]*)
    count=${#devices[@]}
    ((tries++ < 30 && (count == 0 || count != previous)))
  do
    sleep 2
  done
  echo "$count"
}

token=$(ask_imds api/token --request PUT --header 'X-aws-ec2-metadata-token-ttl-seconds: 300')

@include instance_store.sh
# In the background: the agent must not wait for the gigabytes of an image. Before the devices are waited for: the task
# waits for both.
image_by_digest='^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+@sha256:[0-9a-f]{64}$'
if image=$(tag relaunch:image) && [[ $image =~ $image_by_digest ]]; then
  echo "IMAGE=$image" >>"$root/etc/relaunch/machine.env"
  systemctl start --no-block relaunch-pull.service
fi

# The agent takes attributes only when it registers for the first time. Values that are no identifiers are left out:
# they come from tags, which whoever may tag an instance can set.
attributes=()
if machine=$(tag relaunch:machine) && [[ $machine =~ ^[A-Za-z0-9_-]{1,128}$ ]]; then
  attributes+=("\"relaunch.machine\":\"$machine\"")
fi
if [[ $ACCELERATOR == neuron ]]; then
  # ECS does not count Neuron devices.
  attributes+=("\"relaunch.neuron-devices\":\"$(neuron_devices)\"")
fi
# When its kernel started, and the uptimes at which user data began and ended; times.conf puts that of the agent's start
# in the place of the hyphen. An agent with a value that ECS refuses does not start, and so only numbers are let through.
ended=$(uptime)
if [[ $began:$ended =~ ^[0-9]+(\.[0-9]+)?:([0-9]+)(\.[0-9]+)?$ ]]; then
  attributes+=("\"relaunch.boot\":\"$(($(date +%s) - BASH_REMATCH[2])):$began:$ended:-\"")
fi
if ((${#attributes[@]})); then
  (IFS=, && echo "ECS_INSTANCE_ATTRIBUTES={${attributes[*]}}") >>"$root/etc/ecs/ecs.config"
fi

# Last: nothing that the agent needs may come after it.
if [[ $docker_was_stopped == yes ]]; then
  # ecs.service is PartOf=docker.service: the stop took its place in the queue of the boot.
  systemctl start --no-block ecs.service
fi
# A tag that is missing is no failure of cloud-init.
exit 0
