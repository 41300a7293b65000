#!/bin/sh
# Whether a folder has the programs that `make upstream` runs: find-upstream.sh FOLDER
folder=$1
if [ -z "$folder" ]; then
    echo "say where the programs are: make upstream KUBE_BIN=FOLDER" >&2
    exit 1
fi
missing=0
for name in etcd kube-apiserver; do
    if [ ! -x "$folder/$name" ]; then
        echo "no $name in $folder that can be run; put etcd and kube-apiserver there" >&2
        missing=1
    fi
done
for name in kube-controller-manager kube-scheduler; do
    if [ ! -x "$folder/$name" ]; then
        echo "no $name in $folder: what needs controllers or running pods is not asked" >&2
    fi
done
exit $missing
