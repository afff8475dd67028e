#!/bin/sh
# The steps of the image, run by the Dockerfile and by the test of the image.
#   image.sh package   in a clone: makes out/umpire, a folder with everything that the server runs
#   image.sh install   in the image, where that folder is: makes the command, the user and its folder
set -eu
installed=/usr/local/lib/node_modules/umpire
case "$1" in
package)
  # What the lock names and nothing else: npm compares each package with its hash there.
  ONNXRUNTIME_NODE_INSTALL=skip npm ci --no-audit --no-fund --loglevel=error
  rm -rf out
  mkdir -p out/umpire
  node scripts/build-package.ts out
  tar -xzf out/umpire-*.tgz -C out/umpire --strip-components=1
  # Builds of this platform, which npm would fetch again where the package is installed.
  for name in $(node -p 'Object.keys(require("./out/umpire/package.json").optionalDependencies).join(" ")'); do
    [ -d "node_modules/$name" ] || continue
    mkdir -p "$(dirname "out/umpire/node_modules/$name")"
    cp -r "node_modules/$name" "out/umpire/node_modules/$name"
  done
  node out/umpire/scripts/keep-own-build.mjs
  ;;
install)
  chmod 755 $installed/bin/umpire.js
  ln -s ../lib/node_modules/umpire/bin/umpire.js /usr/local/bin/umpire
  groupadd --gid 10001 umpire
  useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin umpire
  mkdir -p /data
  chown umpire:umpire /data
  chmod 700 /data
  ;;
*)
  echo "image.sh package | image.sh install" >&2
  exit 2
  ;;
esac
