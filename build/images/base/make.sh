#!/bin/bash
# Writes the root folder of a minimal Debian 13 as a tar to standard output,
# signed packages only, by the keyring of Debian itself.
set -euo pipefail
exec mmdebstrap --variant=minbase \
	--dpkgopt='path-exclude=/usr/share/doc/*' \
	--dpkgopt='path-exclude=/usr/share/man/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	trixie - "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
