# shellcheck shell=bash
# Shared by the peers' build and start scripts; sourced, never run.

# here is the folder of the peer whose script runs.
here=$(cd "$(dirname "$0")" && pwd)

say() { printf '%s: %s\n' "$(basename "$here")" "$*" >&2; }

# shared are files of other peers, from the folder of all peers, that are sources of this one as well; they come to the same place.
shared=()

# built FOLDER COMMAND... runs COMMAND with a copy of the peer's sources as its working folder, to put what it makes into FOLDER,
# unless FOLDER already has what was made of the same sources. One caller at a time. Only a whole build leaves its mark.
built() {
	local folder=$1 sources file
	shift
	mkdir -p "$folder"
	exec 9>"$folder.lock"
	flock 9
	sources=$(cd "$here" && find . ../lib.sh "${shared[@]/#/../}" -type f -not -path './target/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1)
	if [ "$(cat "$folder/made-of" 2>/dev/null)" = "$sources" ]; then
		say "built before from the same sources"
		return
	fi
	rm -rf "$folder"
	mkdir -p "$folder/work"
	cp -r "$here/." "$folder/work"
	for file in "${shared[@]}"; do
		install -D "$here/../$file" "$folder/work/${file#*/}"
	done
	(cd "$folder/work" && "$@" "$folder")
	rm -rf "$folder/work"
	printf '%s\n' "$sources" >"$folder/made-of"
	say "built"
}

# quietly COMMAND... runs it with its output in a file, whose end is shown where it fails.
quietly() {
	local log
	log=$(mktemp)
	if ! "$@" >"$log" 2>&1; then
		tail -n 30 "$log" >&2
		echo >&2 # so that what is said next has a line of its own
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
}

# need COMMAND... ends the script where one of them is missing.
need() {
	local command
	for command in "$@"; do
		command -v "$command" >/dev/null || { say "cannot be built: $command is missing"; exit 1; }
	done
}
