#!/bin/bash
# Entry point by the contract of the official postgres image: initialises PGDATA
# on the first start, by POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB,
# POSTGRES_INITDB_ARGS and POSTGRES_HOST_AUTH_METHOD (each also as *_FILE) and the
# scripts of /docker-entrypoint-initdb.d, then runs the server as user postgres.
set -euo pipefail

case ${1-postgres} in
-*) set -- postgres "$@" ;;
esac
[ "${1-postgres}" = postgres ] || exec "$@"

if [ "$(id -u)" = 0 ]; then
	mkdir -p "$PGDATA"
	chown postgres:postgres "$PGDATA" /var/run/postgresql
	chmod 0700 "$PGDATA"
	exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

# setting NAME DEFAULT prints $NAME, or what the file $NAME_FILE holds.
setting() {
	local file=${1}_FILE
	if [ -n "${!file-}" ]; then cat "${!file}"; else printf '%s' "${!1-$2}"; fi
}

initialise() {
	local user password db auth script
	user=$(setting POSTGRES_USER postgres)
	password=$(setting POSTGRES_PASSWORD '')
	db=$(setting POSTGRES_DB "$user")
	auth=$(setting POSTGRES_HOST_AUTH_METHOD scram-sha-256)
	read -ra args <<<"$(setting POSTGRES_INITDB_ARGS '')"
	if [ -z "$password" ] && [ "$auth" != trust ]; then
		echo 'POSTGRES_PASSWORD is empty; set it, or POSTGRES_HOST_AUTH_METHOD=trust' >&2
		exit 1
	fi

	initdb --username="$user" ${password:+--pwfile=<(printf '%s\n' "$password")} "${args[@]}"
	printf 'host all all all %s\n' "$auth" >>"$PGDATA/pg_hba.conf"
	printf '%s\n' "listen_addresses = '*'" "unix_socket_directories = '/var/run/postgresql'" 'jit = off' >>"$PGDATA/postgresql.conf"

	# A server on the socket alone, so that nobody meets a half-made database. Its
	# line "ready to accept connections" is the first of the two that clients wait for.
	PGPASSWORD=$password pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
	export PGPASSWORD=$password PGUSER=$user
	if [ "$db" != postgres ]; then
		psql -v ON_ERROR_STOP=1 --no-psqlrc -d postgres -v db="$db" <<<'CREATE DATABASE :"db";'
	fi
	for script in /docker-entrypoint-initdb.d/*; do
		case $script in
		*.sh)
			# shellcheck disable=SC1090 # the user brings it
			if [ -x "$script" ]; then "$script"; else . "$script"; fi
			;;
		*.sql) psql -v ON_ERROR_STOP=1 --no-psqlrc -d "$db" -f "$script" ;;
		*.sql.gz) gunzip -c "$script" | psql -v ON_ERROR_STOP=1 --no-psqlrc -d "$db" ;;
		esac
	done
	pg_ctl -D "$PGDATA" -m fast -w stop
	unset PGPASSWORD PGUSER
}

[ -s "$PGDATA/PG_VERSION" ] || initialise
exec "$@"
