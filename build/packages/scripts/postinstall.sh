#!/bin/sh
# Makes the user of the units and has systemd read these. It starts and restarts nothing: docs/upgrade.md has the order of an
# upgrade.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
	systemd-sysusers docket.conf
elif ! getent passwd docket >/dev/null; then
	useradd --system --user-group --no-create-home --home-dir /var/lib/docket --shell /usr/sbin/nologin docket
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
