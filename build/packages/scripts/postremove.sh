#!/bin/sh
# A spool in /var/lib/docket can hold the only copy of a record, so it stays, also after a purge. So does its owner.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ -d /var/lib/docket ]; then
	echo "docket: /var/lib/docket stays; a spool in it can hold records that are nowhere else" >&2
fi
