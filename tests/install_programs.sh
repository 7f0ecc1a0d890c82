#!/bin/sh
# What tests need besides Python packages: a browser, and a WebGPU adapter (Mesa draws on the processor where there is
# no GPU). Quick where it is there already; asks for nothing.
set -eu

missing=""
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
  missing="chromium"
if [ "$(uname -s)" = Linux ]; then
  ls /usr/share/vulkan/icd.d/*.json >/dev/null 2>&1 || missing="$missing mesa-vulkan-drivers libvulkan1"
fi
command -v g++ >/dev/null || missing="$missing g++"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  # shellcheck disable=SC2086 # a list of packages
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $missing >/dev/null
else
  echo "Tests that need these are skipped without them: sudo apt-get install $missing" >&2
fi
