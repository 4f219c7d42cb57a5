#!/bin/sh
# An agent without a session: `mycelium await --loop --exec` hands it one message after the other, and exit 0 is done.
cat >> "$DIARY"
case "$MYCELIUM_PROMPT" in
*"where does the key live"*) mycelium respond "In the keychain: it is there already, and survives a reinstall. @planner your turn." ;;
*"still with us"*) mycelium respond "Still here, and nothing was lost on my side, @avery." ;;
esac
