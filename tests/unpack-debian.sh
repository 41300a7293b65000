#!/bin/sh
# Makes sure that there is a server to test with: unpack-debian.sh PROGRAM PACKAGE. It is the one on PATH, else that of
# Debian's package, unpacked into target/PACKAGE. It is not installed: Debian's package would start a server of its own.
# Fails when there cannot be one.
set -eu

cd "$(dirname "$0")/.."
program="$1"
package="$2"
folder="target/$package"
if command -v "$program" >/dev/null 2>&1 || [ -x "$folder/usr/bin/$program" ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "$program is not on PATH and this is no Debian: install $program and run again" >&2
    exit 1
fi
echo "$program is missing: unpacking Debian's $package into $folder (apt-get download)"
rm -rf "$folder"
mkdir -p "$folder"
# What is known of packages may be old or nothing, and only root can ask anew.
(cd "$folder" && apt-get download --quiet --quiet "$package" 2>/dev/null) || {
    sudo=""
    if [ "$(id -u)" -ne 0 ]; then
        sudo="sudo"
    fi
    $sudo apt-get update --quiet --quiet
    (cd "$folder" && apt-get download --quiet --quiet "$package")
}
dpkg-deb --extract "$folder"/*.deb "$folder"
[ -x "$folder/usr/bin/$program" ] || {
    echo "Debian's $package brought no usr/bin/$program" >&2
    exit 1
}
