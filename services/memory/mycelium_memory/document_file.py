"""A document as the text of its file: what `get --raw` shows, and what the tree keeps."""

from __future__ import annotations

import json
from typing import Any

from mycelium.memory.v1 import views_pb2
from mycelium_kernel import clock
from mycelium_memory import frontmatter, keys


def text(document: views_pb2.Document) -> str:
    """The hub's fields, the user's own as they are written, the text. `commands_files` reads it back."""
    return frontmatter.render(_managed(document), document.content.fields_yaml, document.content.body)


def _managed(document: views_pb2.Document) -> dict[str, Any]:
    content = document.content
    said: dict[str, Any] = {
        "key": document.key,
        "version": document.version,
        "created_by": document.created_by,
        "created_at": clock.rfc3339(clock.to_millis(document.created_at)),
        "updated_by": document.updated_by,
        "updated_at": clock.rfc3339(clock.to_millis(document.updated_at)),
        "thread": document.thread,
    }
    if keys.is_structured(document.key):
        said["timestamp"] = said["updated_at"]
    if content.tags:
        said["tags"] = list(content.tags)
    if content.expandable:
        said["expandable"] = True
    if content.unsearched:
        said["unsearched"] = True
    if content.value_json:
        said["value"] = json.loads(content.value_json)
    return said
