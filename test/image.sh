#!/bin/bash
# The image without a base image and without a container engine: the steps of the Dockerfile on a root file system made
# by debootstrap, run in namespaces of its own. Needs root and the registries.
#   image.sh build FOLDER           makes FOLDER/root of FOLDER/clone, which is a clone without its node_modules
#   image.sh run FOLDER LIMIT       runs it: read-only root, FOLDER/data as the volume, uid 10001, a new PID namespace, and
#                                   so much memory where the kernel's memory controller can be had
set -euo pipefail
command=$1 folder=$2
root=$folder/root
case $command in
build)
  [ -x "$root/bin/sh" ] || "${DEBOOTSTRAP:-debootstrap}" --variant=minbase --include=ca-certificates bookworm "$root" >"$folder/debootstrap.log"
  # What the base image brings.
  install -m 755 "$(node -p process.execPath)" "$root/usr/local/bin/node"
  (cd "$folder/clone" && deploy/image.sh package)
  mkdir -p "$root/usr/local/lib/node_modules"
  mv "$folder/clone/out/umpire" "$root/usr/local/lib/node_modules/umpire"
  cp "$folder/clone/deploy/image.sh" "$root/tmp/image.sh"
  mount --bind /dev "$root/dev"
  trap 'umount "$root/dev"' EXIT
  chroot "$root" /tmp/image.sh install
  rm "$root/tmp/image.sh"
  ;;
run)
  mkdir -p "$folder/data"
  chown 10001:10001 "$folder/data"
  chmod 700 "$folder/data"
  group=/sys/fs/cgroup/memory/umpire-image-$$ limit=memory.limit_in_bytes
  [ -d /sys/fs/cgroup/memory ] || group=/sys/fs/cgroup/umpire-image-$$ limit=memory.max
  if mkdir "$group" 2>/dev/null; then
    if echo "${3:?}" >"$group/$limit"; then echo $$ >"$group/cgroup.procs"; fi
  fi
  exec unshare --pid --fork --kill-child --mount bash -c '
    set -e
    root=$1 data=$2
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount --bind "$data" "$root/data"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t tmpfs tmpfs "$root/tmp"
    mount --bind /dev "$root/dev"
    mount -o remount,bind,ro "$root"
    exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/bin HOME=/data NODE_ENV=production UMPIRE_HOST=127.0.0.1 \
      UMPIRE_DATA_DIR=/data UMPIRE_PORT="$3" UMPIRE_BOOTSTRAP_KEY="$4" UMPIRE_ENGINE_DECISION_MODEL="$5" \
      chroot "$root" setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all \
      umpire serve
  ' image "$root" "$folder/data" "${UMPIRE_PORT:-0}" "${UMPIRE_BOOTSTRAP_KEY:-}" \
    "${UMPIRE_ENGINE_DECISION_MODEL:-umpire-decide}"
  ;;
esac
