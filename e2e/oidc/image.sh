#!/bin/sh
# Build the image of the issuer for `make test-cluster`: e2e/oidc/image.sh NAME ARCHIVE. Node is this machine's, with the
# two libraries that it has beside the C library's: neither is in the base that all images here share.
set -eu
name=$1 archive=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$(dirname "$archive")" "$folder/bin" "$folder/lib"
node=$(node -p process.execPath)
cp -R "$(dirname "$0")/." "$folder"
cp "$node" "$folder/bin/node"
ldd "$node" | awk '/libstdc|libgcc_s/ {print $3}' | xargs -I{} cp -L {} "$folder/lib"
chmod -R go+rX "$folder"
if command -v "$CLUSTER" > /dev/null; then
    "$CLUSTER" build-image "$name" "$folder" "$archive"
else
    docker build --quiet --tag "$name" "$folder"
    docker save --output "$archive" "$name"
fi
