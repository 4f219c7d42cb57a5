"""The end of a release; named so that it is the last of its folder."""

import json
import subprocess

import pytest

from e2e.cluster.kube import Release, run
from e2e.requirements import requirement
from e2e.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
OF_EVERY_NAMESPACE = {"configmap/kube-root-ca.crt", "serviceaccount/default"}


@requirement("cluster:uninstall")
def test_uninstall_leaves_nothing(release: Release) -> None:
    """No object and no volume, where the values say that the log goes too."""
    release.helm("uninstall", release.name, "--wait", "--timeout=5m")
    left: set[str] = set()

    def nothing() -> bool:
        left.clear()
        left.update(set(release.namespace.everything()) - OF_EVERY_NAMESPACE)
        volumes = json.loads(run("kubectl", "get", "persistentvolumes", "--output", "json"))["items"]
        claims = (volume["spec"].get("claimRef", {}) for volume in volumes)
        left.update(claim["name"] for claim in claims if claim.get("namespace") == release.namespace.name)
        return not left

    try:
        until(nothing, "nothing is left", 120)
    except AssertionError:
        pytest.fail(f"left: {sorted(left)}")
    assert subprocess.run(
        ["helm", "status", release.name, "--namespace", release.namespace.name], check=False
    ).returncode
