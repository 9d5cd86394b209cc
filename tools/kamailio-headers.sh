#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# kamailio-headers.sh DIR [RELEASE]: writes the headers of the installed Kamailio to DIR/include, and its build flags to DIR/flags.
# RELEASE (trixie, ...): of that Debian release's Kamailio. Debian has no kamailio-dev, so the source package is fetched from the
# archives that apt of this machine uses. apt verifies it, and its configuration stays unchanged. Does nothing if DIR is complete.
set -eu

dir=${1:?usage: kamailio-headers.sh DIR [RELEASE]}
release=${2:-}
# shellcheck disable=SC2016 # dpkg-query expands it
version=$([ -n "$release" ] || dpkg-query -W -f '${source:Version}' kamailio)
version=${version:-$release}
[ "$(cat "$dir/version" 2>/dev/null)" != "$version" ] || [ ! -d "$dir/include/lib/srdb1" ] || exit 0

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
log=$dir/log
: >"$log"
work=$(mktemp -d "$dir/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

quietly() {
	if ! "$@" >>"$log" 2>&1; then
		tail -15 "$log" >&2
		echo "kamailio-headers.sh: \"$1 ${2:-}\" failed, see above and $log" >&2
		exit 1
	fi
}

debian_archives() {
	# shellcheck disable=SC2016 # apt expands these
	apt-get indextargets --format '$(CREATED_BY)|$(ORIGIN)|$(REPO_URI) $(RELEASE) $(COMPONENT)' |
		sed -n 's/^Packages|Debian|//p' | sort -u
}

echo "fetching the headers of kamailio $version ..."
[ -n "$(debian_archives)" ] || quietly apt-get -q update
signed=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e $signed ] && signed="[signed-by=$signed] " || signed=
debian_archives | sed "s|^|deb-src $signed|" >"$work/sources.list"
if [ -n "$release" ]; then
	debian_archives | awk -v r="$release" '$2 !~ /-/ { print $1, r, $3 }' | sed "s|^|deb-src $signed|" >"$work/sources.list"
fi
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/src"
private_apt() {
	quietly apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none "$@"
}
private_apt update
cd "$work/src"
# A mirror may lack the signature of upstream; apt verifies the tarball anyway.
if [ -n "$release" ]; then
	(private_apt source --download-only "kamailio/$release") || ls kamailio_*.orig.tar.?z >/dev/null
else
	(private_apt source --download-only --only-source "kamailio=$version") || ls kamailio_*.orig.tar.?z >/dev/null
fi
tar -xf kamailio_*.orig.tar.* --strip-components=1 --wildcards '*/src/Makefile*' '*/src/core' '*/src/modules/tm' '*/src/lib/Makefile*' '*/src/lib/srdb1'
# Only its configuration is built, not Kamailio itself.
touch src/main.c
quietly make -s -C src cfg
# shellcheck disable=SC2016 # make expands these
printf 'include config.mak\n$(file >flags,$(C_DEFS) $(CC_PMUTEX_OPTS))\nall: ;\n' >src/print.mk
quietly make -s -C src -f print.mk
rm -rf "$dir/include"
mkdir "$dir/include"
find src/core src/lib/srdb1 src/modules/tm -name '*.h' | sed 's|^src/||' | tar -C src -cf - -T - | tar -C "$dir/include" -xf -
mv src/flags "$dir/flags"
echo "$version" >"$dir/version"
