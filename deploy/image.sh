#!/bin/sh
# The steps of the image, run by the Dockerfile and by the test of the image.
#   image.sh package          in a clone: makes out/umpire.tgz
#   image.sh install TARBALL  in the image: installs the package and makes the user and its folder
set -eu
case "$1" in
package)
  node scripts/install.mjs
  mkdir -p out
  node scripts/build-package.ts out
  mv out/umpire-*.tgz out/umpire.tgz
  ;;
install)
  npm install --global --no-audit --no-fund --omit=dev "$2"
  npm cache clean --force >/dev/null 2>&1
  groupadd --gid 10001 umpire
  useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin umpire
  mkdir -p /data
  chown umpire:umpire /data
  chmod 700 /data
  ;;
*)
  echo "image.sh package | image.sh install TARBALL" >&2
  exit 2
  ;;
esac
