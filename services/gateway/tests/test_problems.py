"""The table of slugs and the documents made from it."""

from __future__ import annotations

import json
import logging

import pytest

from mycelium_gateway import problems, reference, slugs
from mycelium_kernel.errors import DeadlinePassed, Internal, Refusal, StoreFull, Unavailable

STATUSES = {401, 403, 404, 405, 408, 409, 412, 413, 422, 429, 431, 500, 503, 507}


def test_every_slug_has_a_status_a_sentence_and_a_remedy() -> None:
    """The table is what the reference page and every document are made of."""
    for name, slug in slugs.SLUGS.items():
        assert slug.status in STATUSES, name
        assert slug.title, name
        assert slug.remedy.endswith("."), name


def test_a_refusal_keeps_its_detail_its_command_and_its_extras() -> None:
    """What a service said reaches the caller whole."""
    refusal = Refusal("mention.unknown", "nobody is called @enginer", next="mycelium agent ls", near=["engineer"])

    assert problems.of_refusal(refusal) == {
        "type": "about:blank#mention.unknown",
        "title": "A mentioned handle is unknown",
        "status": 422,
        "detail": "nobody is called @enginer",
        "slug": "mention.unknown",
        "next": "mycelium agent ls",
        "near": ["engineer"],
    }


def test_an_extra_can_not_replace_a_member_of_the_document() -> None:
    """A service's facts stand beside the standard's members, not in their place."""
    document = problems.of_refusal(Refusal("conflict", "again", status="200", title="fine"))

    assert (document["status"], document["title"]) == (409, "Others changed it at the same moment")


def test_an_unlisted_slug_is_a_fault_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with a key, and the caller learns the key and nothing else."""
    with caplog.at_level(logging.ERROR):
        document = problems.of_refusal(Refusal("made.up", "secret"))

    assert (document["slug"], document["status"]) == ("internal", 500)
    assert "secret" not in json.dumps(document)
    assert document["key"] in caplog.text


def test_parts_that_do_not_answer_are_told_apart() -> None:
    """Nothing was done in time, or nobody answered: both may be retried."""
    assert problems.of_unavailable(DeadlinePassed("too late"))["slug"] == "deadline.passed"
    assert problems.of_unavailable(Unavailable("no answer"))["slug"] == "unavailable"
    assert problems.of_unavailable(StoreFull("full"))["slug"] == "store.full"
    assert problems.response(problems.of_unavailable(Unavailable(""))).headers["retry-after"] == "1"
    assert problems.response(problems.of_unavailable(StoreFull(""))).headers["retry-after"] == "30"


def test_a_services_fault_keeps_its_key() -> None:
    """The key finds the record in the service's log."""
    assert problems.of_internal(Internal("k-1"))["key"] == "k-1"


def test_the_reference_has_a_row_for_every_slug() -> None:
    """`python -m mycelium_gateway.reference` prints the page."""
    table = reference.table()

    assert all(f"| `{name}` | {slug.status} |" in table for name, slug in slugs.SLUGS.items())
