#!/bin/sh
# Writes the archives of this folder again, with the programs of earlier commits. It needs git, Go and psql, and a
# Postgres 15 or later whose superuser URL is the argument: sh make.sh postgres://postgres@localhost/postgres
set -eu
url=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(git -C "$here" rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
at() { echo "$url" | sed "s|/[^/?]*\(?.*\)\{0,1\}\$|/$1\1|"; }
for commit in 6a590c11 da2c82f0 cb5edda0 ebfda38f e6768a36; do
	mkdir -p "$work/$commit"
	git -C "$root" archive "$commit" | tar -x -C "$work/$commit"
	(cd "$work/$commit" && go build -o "$work/bin-$commit/" ./cmd/docket ./cmd/consumer)
	psql -q "$url" -c "DROP DATABASE IF EXISTS earlier_$commit WITH (FORCE)" -c "CREATE DATABASE earlier_$commit"
	db=$(at "earlier_$commit")
	DOCKET_DATABASE_URL=$db "$work/bin-$commit/consumer" migrate
	# The table from before the partitions has no rows. The day gets a partition of its own without it.
	psql -q -v ON_ERROR_STOP=1 "$db" -c "DROP TABLE decision_logs_before" -f "$here/sample.sql"
	[ "$commit" = 6a590c11 ] || psql -q -v ON_ERROR_STOP=1 "$db" -f "$here/more.sql"
	rm -rf "${here:?}/$commit"
	to() { DOCKET_DATABASE_URL=$db DOCKET_ARCHIVE_TO="$here/$commit" DOCKET_OPERATOR=mara "$work/bin-$commit/docket" archive "$@"; }
	to --day 2026-08-01 --keep
	if [ "$commit" = da2c82f0 ] || [ "$commit" = ebfda38f ]; then
		psql -q -v ON_ERROR_STOP=1 "$db" -f "$here/letters.sql"
		to --dead-letters
	fi
	psql -q "$url" -c "DROP DATABASE earlier_$commit"
done
