#!/usr/bin/env bash
# Builds the control plane's programs from Go modules into a cache outside the checkout and prints the folder.
# Idempotent: a complete cache is printed at once. The key is the hash of the three go.sum files, so a version
# bump builds anew and never mixes with an older set of binaries.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
key=$(cat "$here"/{kubernetes,kwok,descheduler}/go.sum | sha256sum | cut -c1-16)
bin="${XDG_CACHE_HOME:-$HOME/.cache}/deschedui/controlplane/$key/bin"
if [ "${1:-}" = "--where" ]; then
  echo "$bin"
  exit 0
fi
if [ -e "$bin/.complete" ]; then
  echo "$bin"
  exit 0
fi
command -v go >/dev/null || { echo "go is not on PATH: the control plane cannot be built" >&2; exit 1; }
mkdir -p "$bin"
exec 9>"$bin/../build.lock"
flock 9
if [ ! -e "$bin/.complete" ]; then
  # Without the version the API server reports v0.0.0 and clients refuse features.
  version="-X k8s.io/component-base/version.gitVersion=v1.37.2"
  version="$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
  (cd "$here/kubernetes" && GOBIN="$bin" go install -trimpath -ldflags "-s -w $version" tool) >&2
  (cd "$here/kwok" && GOBIN="$bin" go install -trimpath -ldflags "-s -w" tool) >&2
  (cd "$here/descheduler" && GOBIN="$bin" go install -trimpath -ldflags "-s -w" tool) >&2
  # kwok reads its stages (what a kubelet would do) from files of its own module.
  stages=$(cd "$here/kwok" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
  mkdir -p "$bin/../stages"
  cp "$stages/kustomize/stage/node/fast/node-initialize.yaml" "$bin/../stages/"
  cp "$stages/kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml" "$bin/../stages/"
  for stage in "$stages"/kustomize/stage/pod/fast/*.yaml; do
    [ "$(basename "$stage")" = kustomization.yaml ] || cp "$stage" "$bin/../stages/"
  done
  chmod -R u+w "$bin/../stages"
  touch "$bin/.complete"
fi
echo "$bin"
