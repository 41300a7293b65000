#!/bin/sh
# Makes sure that something is on this machine: sh tests/install-debian.sh NAME CHECK PACKAGE...
# CHECK is a command that succeeds where it is; where it does not, Debian's packages are installed, as root, and CHECK has
# to succeed then. NAME is what people are told is missing.
set -eu

name=$1
check=$2
shift 2
if sh -c "$check" >/dev/null 2>&1; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "$name is missing and this is no Debian: install $name and run again" >&2
    exit 1
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
    sudo="sudo"
fi
echo "$name is missing: installing Debian's $*${sudo:+ with sudo} (apt-get install)"
$sudo apt-get update --quiet --quiet
$sudo apt-get install --quiet --quiet --yes --no-install-recommends "$@"
sh -c "$check" >/dev/null 2>&1 || {
    echo "Debian's $* brought no $name: \`$check\` fails" >&2
    exit 1
}
