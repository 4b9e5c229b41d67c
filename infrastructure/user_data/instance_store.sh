# Images and what containers write go to the instance store, where the type has one. Nothing here fails the boot: without
# it all is on the root volume, also after a reboot, for nothing is in fstab.
readonly store=$root/mnt/instance-store docker=$root/var/lib/docker containerd=$root/var/lib/containerd

instance_store() { # prints its first device: one has terabytes on large types, and the AMI has no mdadm
  local link
  for link in "$root"/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*; do
    [[ -e $link ]] && readlink --canonicalize "$link" && return
  done
  return 1
}

free_mib() { # FOLDER
  df --output=avail --block-size=1M "$1" | tail --lines=1
}

stop_docker() { # its socket too, by which whoever asks would start it
  timeout 60 systemctl stop docker.socket docker.service containerd.service
}

move_docker() { # WAS_ACTIVE
  stop_docker &&
    mount --bind "$store/docker" "$docker" &&
    mount --bind "$store/containerd" "$containerd" || return
  if [[ $1 == active ]]; then
    # It has run during cloud-init, and so does not wait for its end.
    timeout 60 systemctl start docker.service
  else
    systemctl start --no-block docker.service
  fi
}

use_instance_store() { # DEVICE
  local used here there state status=0
  mkdir --parents "$store" "$docker" "$containerd"
  # An image of one's own may have the layers of a training in it.
  used=$(timeout 20 du --summarize --total --block-size=1M "$docker" "$containerd" | tail --lines=1 | cut --fields=1)
  ((${used:-1024} < 1024)) || return
  # It refuses a device with a filesystem. -K: the device is trimmed already.
  timeout 60 mkfs.xfs -K -q "$1" || return
  # Private, or each mount of a container in Docker's folder would be seen here, too.
  mount --make-private --options noatime "$1" "$store" || return
  # Selection counts the root volume.
  here=$(free_mib "$root/") there=$(free_mib "$store")
  if ((${there:-0} < ${here:-1})) || ! mkdir --mode=710 "$store/docker" "$store/containerd"; then
    umount "$store"
    return 1
  fi
  docker_was_stopped=yes
  state=$(systemctl is-active docker.service)
  if ! move_docker "$state"; then
    status=1
    stop_docker
    umount --lazy "$docker" "$containerd" "$store"
    # Its failures count against its limit of starts.
    systemctl reset-failed docker.service
    systemctl start --no-block docker.service
  fi
  return "$status"
}

docker_was_stopped=no
if [[ $INSTANCE_STORE == on ]] && device=$(instance_store); then
  use_instance_store "$device" || echo "relaunch: $device is not used"
fi
