#!/bin/sh
# Give the command a home that it can write, then become the command.
set -eu
if [ ! -w "${HOME:-/}" ]; then
    # A user without an account, or a read-only root file system.
    HOME=$(mktemp -d) && export HOME
fi
exec "$@"
