#!/bin/sh
# Makes sure that there is a Chromium with its driver: those of this machine, else Debian's. Fails when neither is.
set -eu

if [ -x /usr/bin/chromium ] && [ -x /usr/bin/chromedriver ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "/usr/bin/chromium and /usr/bin/chromedriver are not there and this is no Debian: install them and run again" >&2
    exit 1
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
    sudo="sudo"
fi
echo "Chromium is missing: installing chromium and chromium-driver${sudo:+ with sudo} (apt-get install)"
$sudo apt-get update --quiet --quiet
$sudo apt-get install --quiet --quiet --yes --no-install-recommends chromium chromium-driver
[ -x /usr/bin/chromedriver ] || {
    echo "chromium-driver was installed but brought no /usr/bin/chromedriver" >&2
    exit 1
}
