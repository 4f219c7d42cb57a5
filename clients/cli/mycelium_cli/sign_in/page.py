"""The page that a browser shows when it has brought the answer of a sign-in."""

from html import escape

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Mycelium</title>
<style>
  :root {{ color-scheme: light dark; }}
  body {{ margin: 0; min-height: 100vh; display: grid; place-content: center; text-align: center;
         font: 1.1rem/1.5 system-ui, sans-serif; }}
  h1 {{ font-size: 1.3rem; letter-spacing: 0.02em; }}
</style>
<h1>Mycelium</h1>
<p>{words}</p>
</html>
"""


def page(words: str) -> str:
    """A page with one sentence."""
    return _PAGE.format(words=escape(words))
