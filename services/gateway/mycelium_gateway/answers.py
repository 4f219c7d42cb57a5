"""Ready JSON as answers, without a second validation: what `shapes.py` makes is what the schemas say, by test."""

from __future__ import annotations

from starlette.responses import Response

from mycelium_gateway import shapes

JSON = "application/json"


def answer(value: object, status: int = 200, *, sequence: int = 0, location: str = "") -> Response:
    """JSON with a status; a write also says where its fact stands."""
    headers = {}
    if sequence:
        headers["Mycelium-Sequence"] = str(sequence)
    if location:
        headers["Location"] = location
    return Response(shapes.encode(value), status, headers, JSON)


def done(sequence: int = 0) -> Response:
    """204, with the place of the fact when there is one."""
    return Response(status_code=204, headers={"Mycelium-Sequence": str(sequence)} if sequence else None)
