#!/bin/sh
# Stops the units where the package goes away, not in an upgrade. dpkg says remove, rpm counts the packages that stay.
set -e
case "${1:-}" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now docket-collector.service docket-consumer.service docket-parking-replayer.service docket-desk.service || true
	fi
	;;
esac
