#!/bin/sh
# Makes sure that there is an etcd: the one on PATH, else that of Debian's etcd-server, unpacked into target/etcd-server.
# It is not installed: Debian's package would start a server of its own. Fails when there cannot be one.
set -eu

cd "$(dirname "$0")/.."
folder=target/etcd-server
if command -v etcd >/dev/null 2>&1 || [ -x "$folder/usr/bin/etcd" ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "etcd is not on PATH and this is no Debian: install etcd and run again" >&2
    exit 1
fi
echo "etcd is missing: unpacking Debian's etcd-server into $folder (apt-get download)"
rm -rf "$folder"
mkdir -p "$folder"
# What is known of packages may be old or nothing, and only root can ask anew.
(cd "$folder" && apt-get download --quiet --quiet etcd-server 2>/dev/null) || {
    sudo=""
    if [ "$(id -u)" -ne 0 ]; then
        sudo="sudo"
    fi
    $sudo apt-get update --quiet --quiet
    (cd "$folder" && apt-get download --quiet --quiet etcd-server)
}
dpkg-deb --extract "$folder"/*.deb "$folder"
[ -x "$folder/usr/bin/etcd" ] || {
    echo "Debian's etcd-server brought no usr/bin/etcd" >&2
    exit 1
}
