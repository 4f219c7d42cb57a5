"""Settings: written, read back, and where each comes from."""

import stat

from e2e.harness import Machine
from e2e.requirements import requirement


@requirement("config:set")
def test_a_setting_is_set_read_back_and_shown_with_its_source(machine: Machine) -> None:
    """The file is this user's alone, keeps comments, and the environment wins over it."""
    url = machine.url
    machine.url = ""
    machine.run("config", "set", "server.api_url", url).ok()
    file = machine.home / "config.toml"
    file.write_text(f"# mine\n{file.read_text()}")
    machine.run("config", "set", "runtime.backend_port", "8123").ok()
    assert "# mine" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert machine.run("config", "get", "server.api_url").ok().out == f"{url}\n"
    assert machine.run("room", "ls").status == 0
    rows = {row["key"]: row for row in machine.run("config", "show", "--json").json["items"]}
    assert (rows["runtime.backend_port"]["value"], rows["runtime.backend_port"]["source"]) == (8123, str(file))
    assert rows["runtime.bind_addr"]["source"] == "default"
    got = machine.run("config", "get", "runtime.backend_port", "--json", env={"MYCELIUM_BACKEND_PORT": "9000"}).json
    assert (got["value"], got["source"]) == (9000, "MYCELIUM_BACKEND_PORT")
    assert all(row["why"] for row in rows.values())


@requirement("config:near")
def test_a_misspelt_setting_or_a_wrong_value_is_refused(machine: Machine) -> None:
    """With the nearest right name, or what a right value is; nothing is written."""
    for typed, meant in (("server.api_ur", "server.api_url"), ("backend_prot", "runtime.backend_port")):
        refused = machine.run("config", "set", typed, "x")
        assert refused.status == 2
        assert f"did you mean {meant}?" in refused.err
    for key, value in (("runtime.backend_port", "http"), ("runtime.backend_port", "70000"), ("server.api_url", "hub")):
        refused = machine.run("config", "set", key, value)
        assert (refused.status, key in refused.err) == (2, True)
    assert not (machine.home / "config.toml").exists()
