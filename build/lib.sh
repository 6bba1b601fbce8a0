# shellcheck shell=bash
# Shared by the scripts of this folder; sourced, never run.

if [ "${BASH_VERSINFO[0]}" -lt 5 ] || ! command -v flock timeout sha256sum >/dev/null; then
	echo "${0##*/}: needs Linux with bash 5, util-linux and coreutils" >&2
	exit 1
fi

# root is the top of the working tree.
# shellcheck disable=SC2034 # used by the scripts that source this
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

export HOME=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}

# cache outlives the working tree: engine state, downloaded packages, tools.
cache=${DOCKET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/docket}
mkdir -p "$cache"

# Without this, a client library that takes this machine for a container dials
# its default gateway instead of the ports that the engine publishes here.
export TESTCONTAINERS_HOST_OVERRIDE=${TESTCONTAINERS_HOST_OVERRIDE:-127.0.0.1}

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

# now prints a clock in tenths of a second, for "took" lines.
now() { printf '%s\n' $((${EPOCHREALTIME/[.,]/} / 100000)); }

# took START prints the seconds since START as "12.3 s".
took() {
	local tenths=$(($(now) - $1))
	printf '%d.%d s\n' $((tenths / 10)) $((tenths % 10))
}

is_root() { [ "$(id -u)" -eq 0 ]; }

# is_debian: apt is this system's own package manager.
is_debian() { [ -r /etc/debian_version ] && command -v apt-get >/dev/null; }

# apt_install installs packages from the system's own sources, without
# recommendations and without questions. One caller at a time: apt has one lock.
apt_install() {
	(
		flock 8
		export DEBIAN_FRONTEND=noninteractive
		log=$cache/apt.log
		if [ -z "$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' -mmin -720 -print -quit 2>/dev/null)" ]; then
			apt-get update -qq >>"$log" 2>&1 || true # a source that is away matters only if a package is missing below
		fi
		apt-get install -y -qq --no-install-recommends "$@" >>"$log" 2>&1 || {
			apt-get update -qq >>"$log" 2>&1 || true
			apt-get install -y -qq --no-install-recommends "$@" >>"$log" 2>&1
		} || die "apt-get could not install: $* (see $log)"
	) 8>"$cache/apt.lock"
}

# debian_mirror prints where this system has Debian's own packages from, or what DEBIAN_MIRROR says.
debian_mirror() {
	local found
	# shellcheck disable=SC2016 # apt expands it
	found=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m1 '/debian/*$')} ||
		die "this system's sources name no Debian mirror: set DEBIAN_MIRROR to one"
	printf '%s\n' "$found"
}

# lavish COMMAND... runs a compiler that collects its garbage less often, or hardly where memory is plenty: a quarter to a third
# less CPU. For compiling only: a test that inherited it would run with another collector than users have.
lavish() {
	if [ -n "${GOGC:-}" ]; then
		"$@"
	elif [ "$(awk '$1 == "MemAvailable:" { print int($2 / 1024 / 1024) }' /proc/meminfo)" -ge 12 ]; then
		GOGC=off GOMEMLIMIT=1500MiB "$@"
	else
		GOGC=400 "$@"
	fi
}

# need COMMAND PACKAGE installs PACKAGE where COMMAND is missing, or says what to do.
need() {
	command -v "$1" >/dev/null && return
	if is_root && is_debian; then
		say "installing $2 (for $1)"
		apt_install "$2"
	fi
	command -v "$1" >/dev/null || die "$1 is missing: install the package $2 and try again"
}
