"""`make bench-cluster`: how large the images are, and how long an empty namespace takes to become a hub that answers.

Apart from `make bench`, since it needs a cluster.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tarfile
import time
from pathlib import Path

from e2e.cluster.kube import CHARTS, Namespace, Release, run

ARCHIVES = Path("build/images")
ROUNDS = 3
MB = 1_000_000


def layers(archive: Path) -> list[tuple[str, int]]:
    """Name and size of each layer of a docker archive, unpacked, the base first."""
    with tarfile.open(archive) as tar:
        found = tar.extractfile("manifest.json")
        assert found is not None
        (manifest,) = json.loads(found.read())
        return [(name, _member(tar, name).size) for name in manifest["Layers"]]


def _member(tar: tarfile.TarFile, name: str) -> tarfile.TarInfo:
    """A layer that two images share may be a link to the one file."""
    member = tar.getmember(name)
    return tar.getmember(member.linkname) if member.issym() or member.islnk() else member


def sizes() -> str:
    """A table of the images: what each adds to the base that all share."""
    lines = ["| image | MB | of it beyond the base |", "|---|---|---|"]
    for archive in sorted(ARCHIVES.glob("*.tar")):
        (_, base), *own = layers(archive)
        more = sum(size for _, size in own)
        lines.append(f"| {archive.stem} | {(base + more) / MB:.0f} | {more / MB:.0f} |")
    return "\n".join(lines)


def install_to_ready() -> list[float]:
    """Seconds from `helm install --wait` on an empty namespace until every pod is ready, a few times."""
    found = []
    run("helm", "upgrade", "--install", "mycelium-crds", str(CHARTS / "mycelium-crds"),
        "--namespace=mycelium-crds", "--create-namespace")  # fmt: skip
    for number in range(ROUNDS):
        namespace = f"bench-{os.getpid()}-{number}"
        run("kubectl", "create", "namespace", namespace)
        release = Release(Namespace(namespace))
        tag = os.environ.get("TAG", "dev")
        began = time.perf_counter()
        release.install(**{"image.tag": tag, "auth.insecure": True, "nats.onUninstall": "Delete"})
        found.append(time.perf_counter() - began)
        release.helm("uninstall", release.name, "--wait")
        run("kubectl", "delete", "namespace", namespace)
    return found


def main() -> None:
    """Print both; `sizes` alone needs no cluster."""
    print(sizes())
    if sys.argv[1:] != ["sizes"]:
        seconds = install_to_ready()
        load = os.getloadavg()[0]
        print(
            f"\ninstall → ready, s: min {min(seconds):.1f}, p50 {statistics.median(seconds):.1f},"
            f" max {max(seconds):.1f}, n {len(seconds)}; load {load:.1f}"
        )


if __name__ == "__main__":
    main()
