#!/bin/sh
# Makes sure that there is a kubectl: the one on PATH, else that of Debian's kubernetes-client. Fails when neither is.
set -eu

if command -v kubectl >/dev/null 2>&1; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "kubectl is not on PATH and this is no Debian: install kubectl and run again" >&2
    exit 1
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
    sudo="sudo"
fi
echo "kubectl is missing: installing Debian's kubernetes-client${sudo:+ with sudo} (apt-get install)"
$sudo apt-get update --quiet --quiet
$sudo apt-get install --quiet --quiet --yes --no-install-recommends kubernetes-client
command -v kubectl >/dev/null 2>&1 || {
    echo "kubernetes-client was installed but brought no kubectl" >&2
    exit 1
}
