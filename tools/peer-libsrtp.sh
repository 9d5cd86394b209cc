#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# peer-libsrtp.sh [DIR]: Debian's libsrtp2 source package, built on OpenSSL instead of NSS, as DIR/libsrtp2-openssl.so
# (build/peers). A peer of benchmarks and an oracle of tests, never a part of xcipher. The source comes from the archives that
# this machine's apt already uses and is verified by apt; apt's own configuration stays as it is. When it is there already,
# nothing is done. It is bound to its own symbols, so a process may hold it beside Debian's libsrtp2.so.1 (which
# the script checks).
set -eu

cd "$(dirname "$0")/.."
dir=${1:-build/peers}
so=$dir/libsrtp2-openssl.so

tools/deps.sh install deps-bench
version=$(dpkg-query -W -f '${source:Version}\n' libsrtp2-dev | head -1)
[ "$(cat "$so.version" 2>/dev/null)" != "$version" ] || exit 0

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
so=$dir/libsrtp2-openssl.so
log=$dir/libsrtp2.log
: >"$log"
work=$(mktemp -d "$dir/libsrtp2.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

quietly() {
	if ! "$@" >>"$log" 2>&1; then
		tail -15 "$log" >&2
		echo "peer-libsrtp.sh: \"$1 ${2:-}\" failed, see above and $log" >&2
		exit 1
	fi
}

debian_archives() {
	# shellcheck disable=SC2016 # apt expands these
	apt-get indextargets --format '$(CREATED_BY)|$(ORIGIN)|$(REPO_URI) $(RELEASE) $(COMPONENT)' |
		sed -n 's/^Packages|Debian|//p' | sort -u
}

echo "fetching libsrtp2 $version as source ..."
[ -n "$(debian_archives)" ] || quietly apt-get -q update
signed=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e $signed ] && signed="[signed-by=$signed] " || signed=
debian_archives | sed "s|^|deb-src $signed|" >"$work/sources.list"
if ! [ -s "$work/sources.list" ]; then
	echo "peer-libsrtp.sh: apt knows no Debian archive on this machine; \"apt-get update\" may help" >&2
	exit 1
fi
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/src"
private_apt() {
	quietly apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none "$@"
}
private_apt update
cd "$work/src"
private_apt source --only-source "libsrtp2=$version"
cd libsrtp2-*/

echo "building it on OpenSSL ..."
export CFLAGS="-O2 -fPIC"
quietly ./configure --enable-openssl
quietly make -j"$(nproc)" libsrtp2.a
# shellcheck disable=SC2046 # options
quietly gcc -shared -o "$work/lib.so" -Wl,-soname,libsrtp2-openssl.so -Wl,-Bsymbolic \
	-Wl,--whole-archive libsrtp2.a -Wl,--no-whole-archive $(pkg-config --libs libcrypto)
if readelf -rW "$work/lib.so" | awk '$3 !~ /RELATIVE/ && $5 ~ /^srtp_/' | grep .; then
	echo "peer-libsrtp.sh: the library would take these symbols from another libsrtp2" >&2
	exit 1
fi
if ! readelf -dW "$work/lib.so" | grep -q 'NEEDED.*libcrypto'; then
	echo "peer-libsrtp.sh: the library does not use OpenSSL, see $log" >&2
	exit 1
fi
mv "$work/lib.so" "$so"
echo "$version" >"$so.version"
echo "$so: libsrtp2 $version on OpenSSL"
