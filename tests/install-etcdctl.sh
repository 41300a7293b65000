#!/bin/sh
# Makes sure that there is an etcdctl: the one on PATH, else that of Debian's etcd-client. Fails when neither is.
set -eu

if command -v etcdctl >/dev/null 2>&1; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "etcdctl is not on PATH and this is no Debian: install etcdctl and run again" >&2
    exit 1
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
    sudo="sudo"
fi
echo "etcdctl is missing: installing Debian's etcd-client${sudo:+ with sudo} (apt-get install)"
$sudo apt-get update --quiet --quiet
$sudo apt-get install --quiet --quiet --yes --no-install-recommends etcd-client
command -v etcdctl >/dev/null 2>&1 || {
    echo "etcd-client was installed but brought no etcdctl" >&2
    exit 1
}
