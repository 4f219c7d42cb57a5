"""A room's folder as a person and their programs see it: files in it, git over it, and what the hub says meanwhile."""

import subprocess
from pathlib import Path

from e2e.harness import Hub
from e2e.room import Document, Room
from e2e.waiting import until

GIT = ("git", "-c", "user.name=kim", "-c", "user.email=kim@example.org", "-c", "commit.gpgsign=false")


class Tree:
    """The folder of one room, on the machine of its hub."""

    def __init__(self, hub: Hub, room: Room) -> None:
        self.room = room
        self.folder = hub.home / "rooms" / room.name
        until((self.folder / ".room").exists, "the room has a folder")

    def put(self, key: str, value: str, handle: str = "avery") -> Document:
        """Write by a call."""
        answer = self.room.api.put(self.room.at("memory", *key.split("/")), {"value": value}, handle=handle)
        assert answer.status in {200, 201}, answer
        found: Document = answer.json
        return found

    def get(self, key: str) -> Document | None:
        """What the hub says; None: there is no such memory."""
        answer = self.room.api.get(self.room.at("memory", *key.split("/")))
        found: Document | None = answer.json if answer.status == 200 else None
        return found

    def value(self, key: str) -> str | None:
        """Its text."""
        found = self.get(key)
        return str(found["value"]) if found else None

    def versions(self, key: str) -> list[Document]:
        """The newest first."""
        found: list[Document] = []
        cursor: str | None = ""
        while cursor is not None:
            query: dict[str, str | int | list[str]] = {"view": "versions", **({"cursor": cursor} if cursor else {})}
            page = self.room.api.get(self.room.at("memory", *key.split("/"), **query)).ok(200).json
            found += page["items"]
            cursor = page["next"]
        return found

    def documents(self) -> dict[str, str]:
        """Every document as its file should be."""
        page = self.room.api.get(self.room.at("memory", limit=5000, brief="true")).ok(200).json
        assert page["next"] is None
        return {f"{row['key']}.md": self.raw(row["key"]) for row in page["items"]}

    def raw(self, key: str) -> str:
        """As it is stored."""
        answer = self.room.api.get(self.room.at("memory", *key.split("/"), view="raw"))
        return answer.body.decode() if answer.status == 200 else ""

    def rows(self, prefix: str = "") -> list[Document]:
        """The memories whose keys begin so, in few calls; none while the hub does not answer."""
        found: list[Document] = []
        cursor: str | None = ""
        while cursor is not None:
            query: dict[str, str | int | list[str]] = {"prefix": prefix, "limit": 1000}
            answer = self.room.api.get(self.room.at("memory", **query, **({"cursor": cursor} if cursor else {})))
            if answer.status != 200:
                return []
            found += answer.json["items"]
            cursor = answer.json["next"]
        return found

    def is_at(self, texts: dict[str, str], version: int) -> bool:
        """Whether these keys, and no other beside them, have these texts at that version, in the hub and in files."""
        prefix = f"{next(iter(texts)).rpartition('/')[0]}/"
        if {row["key"]: (row["value"], row["version"]) for row in self.rows(prefix)} != {
            key: (text, version) for key, text in texts.items()
        }:
            return False
        files = {name.removesuffix(".md"): text for name, text in self.files().items() if name.startswith(prefix)}
        return files.keys() == texts.keys() and all(f"\nversion: {version}\n" in text for text in files.values())

    def problems(self) -> dict[str, str]:
        """What is told of files that are left alone, or were taken although a write met them, by path."""
        page = self.room.api.get(self.room.at("memory", view="problems")).ok(200).json
        return {row["path"]: row["reason"] for row in page["items"]}

    def path(self, key: str) -> Path:
        """Its file."""
        return self.folder / f"{key}.md"

    def files(self) -> dict[str, str]:
        """Every file that is a document's."""
        found = {}
        for path in self.folder.rglob("*.md"):
            parts = path.relative_to(self.folder).parts
            if not any(part.startswith(".") for part in parts):
                try:
                    found["/".join(parts)] = path.read_text(encoding="utf-8")
                except FileNotFoundError:
                    continue
        return found

    def until_same(self, within_s: float = 10.0) -> dict[str, str]:
        """The files, once they are the documents."""

        def look() -> dict[str, str] | None:
            files = self.files()
            return files if files == self.documents() else None

        until(lambda: look() is not None, "the files are the documents", within_s)
        return self.files()

    def edit(self, key: str, old: str, new: str) -> None:
        """By hand: the file is written in place."""
        text = self.path(key).read_text(encoding="utf-8")
        assert old in text
        self.path(key).write_text(text.replace(old, new), encoding="utf-8")

    def git(self, *words: str) -> str:
        """A command of git in the folder."""
        done = subprocess.run([*GIT, *words], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
