#!/bin/bash
# Writes the root folder of a minimal Debian 13 as a tar to standard output,
# signed packages only, by the keyring of Debian itself. $1 is the mirror.
set -euo pipefail
exec mmdebstrap --variant=minbase \
	--dpkgopt='path-exclude=/usr/share/doc/*' \
	--dpkgopt='path-exclude=/usr/share/man/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	trixie - "$1"
