"""What every test run begins with."""

from __future__ import annotations

import signal

# A shell that starts a run in the background has it, and all that it starts, ignore Ctrl-C; tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
