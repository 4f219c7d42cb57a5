"""A page that shows the OpenAPI document. It loads nothing from elsewhere, so it works offline."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from starlette.responses import HTMLResponse, RedirectResponse, Response

router = APIRouter(include_in_schema=False)
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'"
)


@router.get("/")
async def front() -> Response:
    """Whoever opens the hub's address in a browser finds something to read."""
    return RedirectResponse("/docs")


@router.get("/docs")
@router.get("/redoc")
async def docs() -> Response:
    page = files("mycelium_gateway").joinpath("docs.html").read_text(encoding="utf-8")
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})
