#!/bin/bash
# Entry point by the contract of the official redis image: options alone are those of redis-server, which runs as user
# redis and answers other machines, too.
set -euo pipefail

case ${1-redis-server} in
-* | *.conf) set -- redis-server "$@" ;;
esac
if [ "${1-redis-server}" != redis-server ]; then exec "$@"; fi
if [ "$(id -u)" = 0 ]; then
	chown redis:redis .
	exec setpriv --reuid=redis --regid=redis --init-groups "$0" "$@"
fi
umask 0077
exec "$@" --protected-mode no
