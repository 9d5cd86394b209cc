#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# intel-opencl.sh [FOLDER]: Intel's OpenCL runtime for CPUs, a second implementation to test kernels on, from its wheels
# on PyPI into FOLDER (build/peers/intel-opencl); installs nothing. Prints the environment that makes programs use it:
#   env $(tools/intel-opencl.sh) build/t/test_opencl
# Exit status 3, with a line that says why, where it cannot be had.
set -u
cd "$(dirname "$0")/.." || exit 1
folder=$(realpath -m "${1:-build/peers/intel-opencl}")

unavailable() {
	echo "intel-opencl: $1" >&2
	exit 3
}

fetch() {
	local wheel

	[ "$(uname -m)" = x86_64 ] || unavailable "only for x86-64"
	mkdir -p "$folder/wheels" "$folder/lib" "$folder/vendors"
	python3 -m pip --disable-pip-version-check download --quiet --no-deps --dest "$folder/wheels" \
		intel-opencl-rt intel-cmplr-lib-rt tbb >&2 || unavailable "pip cannot download intel-opencl-rt, intel-cmplr-lib-rt, tbb"
	for wheel in "$folder"/wheels/*.whl; do
		python3 -m zipfile -e "$wheel" "$folder/unpacked" || unavailable "cannot unpack $wheel"
	done
	# Links all libraries into one folder, except the bundled loader: we use the system's.
	find "$folder/unpacked" -type f -path '*/lib/*' ! -name 'libOpenCL.so*' -exec mv -t "$folder/lib" {} +
	rm -rf "$folder/wheels" "$folder/unpacked"
	[ -e "$folder/lib/libintelocl.so" ] || unavailable "the wheels hold no libintelocl.so"
	echo "$folder/lib/libintelocl.so" > "$folder/vendors/intel.icd"
}

[ -e "$folder/vendors/intel.icd" ] || fetch
echo "OCL_ICD_VENDORS=$folder/vendors LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
