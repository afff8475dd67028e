#!/bin/bash
# The image without a base image and without a container engine: the steps of the Dockerfile on a root file system made
# by debootstrap, run in namespaces of its own. Needs root, debootstrap and the registries.
#   image.sh build FOLDER TARBALL   makes FOLDER/root
#   image.sh run FOLDER             runs it: read-only root, FOLDER/data as the volume, uid 10001, a new PID namespace, and
#                                   512 MB of memory where the kernel's memory controller can be had
set -euo pipefail
command=$1 folder=$2
root=$folder/root
case $command in
build)
  here=$(cd "$(dirname "$0")/.." && pwd)
  [ -x "$root/bin/sh" ] || debootstrap --variant=minbase --include=ca-certificates bookworm "$root" >"$folder/debootstrap.log"
  # What the base image brings: Node and npm.
  install -m 755 "$(node -p process.execPath)" "$root/usr/local/bin/node"
  mkdir -p "$root/usr/local/lib/node_modules"
  cp -r "$(dirname "$(readlink -f "$(command -v npm)")")/.." "$root/usr/local/lib/node_modules/npm"
  ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # How this machine reaches the registry; removed again.
  for file in $(npm config get userconfig) $(npm config get globalconfig) $(npm config get cafile) ${NODE_EXTRA_CA_CERTS:-}; do
    if [ -f "$file" ]; then install -D -m 644 "$file" "$root$file"; fi
  done
  cp "$3" "$root/tmp/umpire.tgz"
  cp "$here/deploy/image.sh" "$root/tmp/image.sh"
  mount --bind /dev "$root/dev"
  trap 'umount "$root/dev"' EXIT
  HOME=/root chroot "$root" /tmp/image.sh install /tmp/umpire.tgz
  rm -rf "$root/tmp/umpire.tgz" "$root/tmp/image.sh" "$root/root/.npmrc" "$root/root/.npm"
  ;;
run)
  mkdir -p "$folder/data"
  chown 10001:10001 "$folder/data"
  chmod 700 "$folder/data"
  group=/sys/fs/cgroup/memory/umpire-image-$$ limit=memory.limit_in_bytes
  [ -d /sys/fs/cgroup/memory ] || group=/sys/fs/cgroup/umpire-image-$$ limit=memory.max
  if mkdir "$group" 2>/dev/null; then
    if echo 512M >"$group/$limit"; then echo $$ >"$group/cgroup.procs"; fi
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
      UMPIRE_DATA_DIR=/data UMPIRE_PORT="$3" UMPIRE_BOOTSTRAP_KEY="$4" \
      chroot "$root" setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all \
      umpire serve
  ' image "$root" "$folder/data" "${UMPIRE_PORT:-0}" "${UMPIRE_BOOTSTRAP_KEY:-}"
  ;;
esac
