#!/bin/sh
# Makes sure that there is a Python with the Kubernetes clients of PyPI, pytest and maturin, in target/python-client. Fails when there cannot be.
set -eu

cd "$(dirname "$0")/.."
folder=target/python-client
wanted="kubernetes==37.0.2 kubernetes_asyncio==36.1.0 lightkube==1.0.1 kr8s==0.20.15 kopf==1.45.2 pytest==9.2.0 selenium==4.51.0 maturin==1.16.0"
if [ "$(cat "$folder/wanted" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
sh tests/install-debian.sh "python3 with venv" 'python3 -c "import venv, ensurepip"' python3 python3-venv
echo "installing PyPI's $wanted into $folder"
rm -rf "$folder"
mkdir -p target
python3 -m venv "$folder"
# Each is a word.
# shellcheck disable=SC2086
"$folder/bin/pip" install --quiet --disable-pip-version-check $wanted
# The dependencies of other systems, too: maturin looks at all.
cargo fetch --quiet --locked
echo "$wanted" > "$folder/wanted"
