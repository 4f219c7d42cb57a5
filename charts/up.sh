#!/bin/sh
# Start the cluster and give it the images that it has not: charts/up.sh ARCHIVE...
set -eu
"$CLUSTER" up
state=$("$CLUSTER" kubeconfig) # made anew with every cluster, which begins empty
for archive; do
    if [ ! -e "$archive.loaded" ] || [ "$archive" -nt "$archive.loaded" ] || [ "$state" -nt "$archive.loaded" ]; then
        "$CLUSTER" load-image "$archive"
        touch "$archive.loaded"
    fi
done
