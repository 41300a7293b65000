#!/bin/sh
# Makes sure that there is a Python with the `kubernetes` client of PyPI, in target/python-client. Fails when there cannot be.
set -eu

cd "$(dirname "$0")/.."
folder=target/python-client
wanted=37.0.2
if "$folder/bin/python" -c "import kubernetes; assert kubernetes.__version__ == '$wanted'" 2>/dev/null; then
    exit 0
fi
if ! python3 -c "import venv, ensurepip" 2>/dev/null; then
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "python3 with venv is not there and this is no Debian: install it and run again" >&2
        exit 1
    fi
    sudo=""
    if [ "$(id -u)" -ne 0 ]; then
        sudo="sudo"
    fi
    echo "python3 with venv is missing: installing python3 and python3-venv${sudo:+ with sudo} (apt-get install)"
    $sudo apt-get update --quiet --quiet
    $sudo apt-get install --quiet --quiet --yes --no-install-recommends python3 python3-venv
fi
echo "installing PyPI's kubernetes $wanted into $folder"
rm -rf "$folder"
mkdir -p target
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check "kubernetes==$wanted"
