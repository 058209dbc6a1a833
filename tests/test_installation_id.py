"""The id of this installation: given or kept in a file, made once, and never a guess."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deschedui import config, installation

KEY = "Zk3" + "abcdefghijklmnopqrstuvwxyz" * 3
POSTGRES = {"DESCHEDUI_SECRET_KEY": KEY, "DESCHEDUI_DATABASE_URL": "postgresql://deschedui@db/deschedui"}
ID = "9f3c1f0e6a2b4a549c1e0d5b7b1a0001"


def test_an_installation_on_postgresql_does_not_start_without_its_id() -> None:
    with pytest.raises(config.ConfigurationError, match=r"DESCHEDUI_INSTALLATION_ID: must be set"):
        config.load(POSTGRES)


def test_the_id_is_read_from_a_mounted_file(tmp_path: Path) -> None:
    (tmp_path / "id").write_text(ID + "\n")
    env = config.load(POSTGRES | {"DESCHEDUI_INSTALLATION_ID_FILE": str(tmp_path / "id")})
    assert env.installation_id == ID


@pytest.mark.parametrize("text", ["short", "sixteen letters!", "a" * 129, "ü" * 20, "one two three four"])
def test_an_id_that_could_be_guessed_or_not_be_written_stops_the_start(text: str) -> None:
    with pytest.raises(config.ConfigurationError, match="DESCHEDUI_INSTALLATION_ID: must be 16 to 128"):
        config.load(POSTGRES | {"DESCHEDUI_INSTALLATION_ID": text})


def test_one_machine_with_sqlite_needs_none() -> None:
    assert config.load({"DESCHEDUI_SECRET_KEY": KEY}).installation_id == ""


def test_the_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "var" / "installation-id"
    first = installation.kept_in(path)
    assert (len(first), installation.kept_in(path)) == (32, first)
    assert (path.stat().st_mode & 0o777, [each.name for each in path.parent.iterdir()]) == (
        0o600,
        [path.name],
    )


def test_of_processes_that_start_at_once_all_have_one_id(tmp_path: Path) -> None:
    path = tmp_path / "installation-id"
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(installation.kept_in, [path] * 32))
    assert len(found) == 1


def test_two_installations_have_two_ids() -> None:
    assert installation.new_id() != installation.new_id()
