# The version of a release, v1.2.3 or what git describe says, as packages and charts have it. Sourced by build/release;
# build/packages tests the order in which they sort.
# shellcheck shell=bash

# The parts of v1.2.3-rc.1-4-gabc: 1.2.3, rc.1, 4 commits after it, gabc. It fails where the version is of another form.
parts() {
	local v=${1#v}
	base='' patch='' before='' commits='' hash=''
	if [[ $v =~ ^(.*)-([0-9]+)-(g[0-9a-f]+)$ ]]; then v=${BASH_REMATCH[1]} commits=${BASH_REMATCH[2]} hash=${BASH_REMATCH[3]}; fi
	[[ $v =~ ^([0-9]+\.[0-9]+\.)([0-9]+)(-([0-9A-Za-z.-]+))?$ ]] || return 1
	base=${BASH_REMATCH[1]} patch=${BASH_REMATCH[2]} before=${BASH_REMATCH[4]}
}

# package_version VERSION: what comes before a release behind ~, and commits after a version behind +.
package_version() {
	local base patch before commits hash
	if parts "$1"; then
		printf '%s\n' "$base$patch${before:+~${before//-/.}}${commits:+"+$commits.$hash"}"
	else
		printf '0.0.0~g%s\n' "${1//[^0-9A-Za-z.]/.}"
	fi
}

# chart_version VERSION: semantic, as Helm wants it. Commits after a release come before the next one.
chart_version() {
	local base patch before commits hash
	if ! parts "$1"; then
		printf '0.0.0-g%s\n' "${1//[^0-9A-Za-z.-]/-}"
	elif [ -z "$commits" ]; then
		printf '%s\n' "$base$patch${before:+-$before}"
	elif [ -n "$before" ]; then
		printf '%s\n' "$base$patch-$before.0.$commits.$hash"
	else
		printf '%s\n' "$base$((patch + 1))-0.$commits.$hash"
	fi
}
