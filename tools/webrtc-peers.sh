#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# webrtc-peers.sh [DIR [NAME...]]: fetches peers of t/webrtc that Debian does not have, into DIR (build/webrtc). Never a part of xcipher.
#   aiortc   Python package and what it needs, by pip into DIR/python
#   jssip    SIP client for browsers, by npm; bundled by esbuild into DIR/js/jssip.js
#   pion     the program of t/webrtc/pion, built by go into DIR/pion
#   grafana  Grafana's own model of a dashboard, a Python package, by pip into DIR/grafana; for t/e2e
#   str0m    the program of t/webrtc/str0m, built by cargo into DIR/str0m; needs Rust 1.89 and takes minutes
# Versions are fixed here. A peer that is there already is left as it is. A peer that cannot be fetched is skipped with one line, and
# the exit status is 0: tests with that peer are then skipped.
set -eu

cd "$(dirname "$0")/.."
dir=${1:-build/webrtc}
[ $# = 0 ] || shift
[ $# != 0 ] || set -- aiortc jssip pion str0m

AIORTC=1.16.0
JSSIP=3.13.8
GRAFANA="1769699998!10.1.0" # the SDK of this time, for Grafana 10.1
ESBUILD=0.25.12

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# Exit status 0 if NAME is installed in this VERSION.
have() {
	[ "$(cat "$dir/$1.version" 2>/dev/null)" = "$2" ]
}

# fetch NAME VERSION PROGRAM: calls fetch_NAME and logs its output.
fetch() {
	! have "$1" "$2" || return 0
	if ! command -v "$3" >/dev/null; then
		echo "webrtc-peers.sh: $1 skipped: $3 is not installed"
		return 0
	fi
	echo "fetching $1 $2 ..."
	if (set -e; "fetch_$1") >"$dir/$1.log" 2>&1; then
		echo "$2" >"$dir/$1.version"
	else
		echo "webrtc-peers.sh: $1 skipped: $3 failed: $(grep -iE 'error|fail' "$dir/$1.log" | tail -1)"
	fi
}

fetch_aiortc() {
	rm -rf "$dir/python"
	/usr/bin/python3 -m pip install --quiet --disable-pip-version-check --retries 1 --only-binary=:all: --target "$dir/python" "aiortc==$AIORTC" || return 1
	PYTHONPATH="$dir/python" /usr/bin/python3 -c 'import aiortc'
}

fetch_grafana() {
	rm -rf "$dir/grafana"
	/usr/bin/python3 -m pip install --quiet --disable-pip-version-check --retries 1 --only-binary=:all: --target "$dir/grafana" "grafana-foundation-sdk==$GRAFANA" || return 1
	PYTHONPATH="$dir/grafana" /usr/bin/python3 -c 'import grafana_foundation_sdk.models.dashboard'
}

fetch_jssip() {
	mkdir -p "$dir/js" || return 1
	cd "$dir/js" || return 1
	npm install --silent --no-audit --no-fund --fetch-retries=1 --prefix . "jssip@$JSSIP" "esbuild@$ESBUILD" || return 1
	node_modules/.bin/esbuild node_modules/jssip/lib/JsSIP.js --bundle --format=iife --global-name=JsSIP --outfile=jssip.js
}

fetch_pion() {
	cp t/webrtc/pion/*.go t/webrtc/pion/go.* "$dir/pion.src/" || return 1
	cd "$dir/pion.src" || return 1
	CGO_ENABLED=0 go build -o ../pion .
}

fetch_str0m() {
	cp -r t/webrtc/str0m/. "$dir/str0m.src/" || return 1
	cd "$dir/str0m.src" || return 1
	CARGO_TARGET_DIR=$dir/str0m.src/target cargo build --release || return 1
	cp target/release/str0m-peer ../str0m || return 1
	rm -rf target
}

for name; do
	case $name in
	aiortc) fetch aiortc "$AIORTC" /usr/bin/python3 ;;
	grafana) fetch grafana "$GRAFANA" /usr/bin/python3 ;;
	jssip) fetch jssip "$JSSIP" npm ;;
	pion)
		[ -e t/webrtc/pion/main.go ] || continue
		mkdir -p "$dir/pion.src"
		fetch pion "$(cat t/webrtc/pion/* | cksum | cut -d' ' -f1)" go
		;;
	str0m)
		[ -e t/webrtc/str0m/Cargo.toml ] || continue
		mkdir -p "$dir/str0m.src"
		fetch str0m "$(cat t/webrtc/str0m/Cargo.toml t/webrtc/str0m/src/* | cksum | cut -d' ' -f1)" cargo
		;;
	*)
		echo "webrtc-peers.sh: unknown peer \"$name\"" >&2
		exit 2
		;;
	esac
done
