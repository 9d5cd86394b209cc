#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Which Debian packages the tree needs, and how they get onto the machine.
#   deps.sh missing PKGCONFIG-NAME...   prints the Debian packages that are missing for these
#   deps.sh install deps|deps-test|deps-demo|deps-lint
set -eu

package_of() {
	case $1 in
	libcrypto) echo libssl-dev ;;
	liburcu) echo liburcu-dev ;;
	libnetfilter_queue) echo libnetfilter-queue-dev ;;
	libmnl) echo libmnl-dev ;;
	jansson) echo libjansson-dev ;;
	OpenCL) echo ocl-icd-opencl-dev ;;
	inih) echo libinih-dev ;;
	*) echo "$1" ;;
	esac
}

build="gcc make pkg-config python3 libssl-dev liburcu-dev libnetfilter-queue-dev libmnl-dev libjansson-dev libinih-dev
ocl-icd-opencl-dev opencl-c-headers"

case ${1:-} in
missing)
	shift
	command -v pkg-config >/dev/null || { echo pkg-config; exit 0; }
	for name; do
		pkg-config --exists "$name" || package_of "$name"
	done
	;;
*)
	echo "install: not done in this skeleton" >&2
	;;
esac
