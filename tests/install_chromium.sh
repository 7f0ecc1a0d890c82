#!/bin/sh
# The browser that the tests marked `browser` drive. Quick where it is there already; asks for nothing.
set -eu
for program in chromium chromium-browser google-chrome; do
  if command -v "$program" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium >/dev/null
else
  echo "The tests in a browser need Chromium and are skipped without it: sudo apt-get install chromium" >&2
fi
