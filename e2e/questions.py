"""Twenty questions about this repository's documents, each with the sections that answer it, for the tests of search.

They were written down before anything was searched, and none was changed to be found: a rate that falls is a search
that has become worse, or a document that has been moved.
"""

from pathlib import Path

ROOT = Path(__file__).parent.parent
QUESTIONS = {
    "what happens to a NATS server that has frozen": ["docs/decisions/0011*#decision"],
    "why are claims never batched together": ["docs/decisions/0005*#decision"],
    "how do I restore a hub from a backup": ["docs/how-to/back-up-and-restore#restore"],
    "how does the hub tell which session a command line belongs to": ["docs/decisions/0010*#decision"],
    "which port do several gateways answer on": ["docs/decisions/0013*#decision", "docs/decisions/0013*#context"],
    "limit what an engine may spend in one room": ["docs/how-to/add-an-engine#give-a-room-a-budget"],
    "let people on other computers reach the hub": ["docs/how-to/run-a-hub-for-a-team#from-other-machines"],
    "start the hub again after a reboot": ["docs/how-to/run-a-hub-for-a-team#keep-it-running"],
    "take the whole thing off the cluster again": ["docs/how-to/install-on-a-cluster#upgrade-take-down"],
    "run a command whenever an agent is mentioned": ["docs/how-to/let-agents-take-part#a-command-for-each-mention"],
    "post from GitHub Actions": ["docs/how-to/post-from-a-ci-job#a-step-of-github-actions"],
    "how is a power cut tested": [
        "docs/explanation/reliability#how-a-loss-of-power-is-tested",
        "docs/decisions/0014*#decision",
    ],
    "what can you not rely on": ["docs/explanation/reliability#what-is-not-promised"],
    "can a stranger find out that a private room exists": ["docs/explanation/reliability#a-private-room-is-a-boundary"],
    "a damaged bit on the disk is detected": [
        "docs/explanation/reliability#one-flipped-bit-is-found-named-and-put-right",
        "docs/decisions/0015*#decision",
    ],
    "how fast does a watcher see a new post": ["docs/explanation/performance#post--one-sse-watcher-has-it"],
    "reconnecting of a thousand clients at once": [
        "docs/explanation/performance#a-thousand-watchers-are-cut-off-and-come-back",
        "docs/decisions/0019*#decision",
    ],
    "export a single room to a file": ["docs/how-to/back-up-and-restore#one-room"],
    "steps that a message takes from the command line to the other agent": ["ARCHITECTURE#the-journey-of-one-message"],
    "comparison with other products": ["docs/explanation/performance#other-products-on-the-same-jobs"],
}


def documents() -> dict[str, str]:
    """The repository's own documents by the key they get; those that are made from the code are left out."""
    files = [
        ROOT / "README.md",
        ROOT / "ARCHITECTURE.md",
        *ROOT.glob("docs/*/*.md"),
        *ROOT.glob("services/*/README.md"),
    ]
    kept = [file for file in sorted(files) if "reference" not in file.parts]
    return {str(file.relative_to(ROOT).with_suffix("")): file.read_text(encoding="utf-8") for file in kept}


def place(found: list[str], wanted: list[str]) -> int:
    """Where the first of the wanted sections stands, from 1; 0: nowhere."""
    return next((number for number, one in enumerate(found, 1) if any(Path(one).match(want) for want in wanted)), 0)
