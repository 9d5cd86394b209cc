#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Which Debian packages the tree needs, and how they get onto the machine.
#   deps.sh missing PKGCONFIG-NAME|program:NAME...          prints the Debian packages that are missing for these
#   deps.sh install PURPOSE     installs the missing packages for that purpose, as root
# Installing starts no service and leaves none enabled that was not there before. When nothing is missing it does nothing.
set -eu

build="gcc libc6-dev make pkg-config python3 libssl-dev libmnl-dev ocl-icd-opencl-dev
opencl-c-headers libxdp-dev libbpf-dev liburing-dev libcurl4-openssl-dev libpcap-dev libwebsockets-dev clang-14"
run="pocl-opencl-icd iproute2 iptables nftables procps"
# libjson-perl: a dependency that rtpengine-utils omits
peers="kamailio kamailio-tls-modules kamailio-sqlite-modules kamailio-xmlrpc-modules rtpengine-daemon rtpengine-utils libjson-perl baresip-core libbzrtp0 libgstreamer-plugins-base1.0-0"
# libcurl comes with the build's packages
module="kamailio dpkg-dev binutils libxml2-dev"
# real WebRTC peers; tools/webrtc-peers.sh fetches those that Debian does not have
gstreamer="gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-nice gir1.2-gst-plugins-bad-1.0 python3-gi"
webrtc="$gstreamer rtpengine-daemon kamailio kamailio-websocket-modules kamailio-tls-modules kamailio-sqlite-modules baresip-core linphone-cli chromium openssl python3-pip python3-numpy libsrtp2-dev redis-server iproute2 nftables procps"
# programs that read our output: promtool, tshark for recordings, a browser for the page (200 MB to fetch)
look="prometheus tshark chromium"
# the LoST server with both storages, and its second client; IPsec between the proxies
ng911="python3-aiohttp python3-asyncpg python3-cryptography python3-jwcrypto python3-httptools python3-lxml python3-shapely python3-uvloop libsqlite3-mod-spatialite postgresql-postgis openssl
kamailio kamailio-json-modules kamailio-tls-modules kamailio-utils-modules charon-systemd strongswan-swanctl libcharon-extra-plugins libstrongswan-standard-plugins"
# without the kernel's image: the tests fetch and unpack it without installing
kernel="qemu-system-x86 linux-headers-amd64 busybox-static dash iproute2 nftables kmod binutils libsrtp2-dev openssl libbzrtp0"
# rtpengine in its kernel mode: the daemon and its libraries. Its module and netfilter rule are fetched and unpacked, not installed
bench_kernel="rtpengine-daemon iptables"
kernel_debug="flex bison bc libelf-dev libssl-dev"
deb="clang debhelper dh-dkms dpkg-dev lintian fakeroot kamailio libxml2-dev libcmocka-dev libsrtp2-dev libjansson-dev pocl-opencl-icd"
lint="clang-format-14 cppcheck shellcheck mandoc git pyflakes3"

# each codec plug-in is built if the package of its library is there; xcipher-av needs the last three
codecs="libopus-dev libgsm1-dev libspeex-dev libspeexdsp-dev libopencore-amrnb-dev libopencore-amrwb-dev libvo-amrwbenc-dev libbcg729-dev libspandsp-dev libavcodec-dev libavformat-dev libswresample-dev"

package_of() {
	case $1 in
	libcrypto) echo libssl-dev ;;
	libmnl) echo libmnl-dev ;;
	OpenCL) echo ocl-icd-opencl-dev ;;
	libxdp) echo libxdp-dev ;;
	libbpf) echo libbpf-dev ;;
	liburing) echo liburing-dev ;;
	libpcap) echo libpcap-dev ;;
	libssl) echo libssl-dev ;;
	libcurl) echo libcurl4-openssl-dev ;;
	libwebsockets) echo libwebsockets-dev ;;
	*) echo "$1" ;;
	esac
}

missing_for_build() {
	if ! command -v pkg-config >/dev/null; then
		# shellcheck disable=SC2086 # a list of names
		not_installed $build
		return
	fi
	for name; do
		case $name in
		program:*) command -v "${name#program:}" >/dev/null || echo "${name#program:}" ;;
		*) pkg-config --exists "$name" || package_of "$name" ;;
		esac
	done
}

packages_for() {
	case $1 in
	deps) echo "$build pocl-opencl-icd" ;;
	deps-demo) echo "$build $run kamailio baresip-core python3-numpy" ;;
	deps-test) echo "$build $run $peers $module $look $ng911 $codecs espeak-ng ffmpeg redis-server sip-tester python3-numpy python3-matplotlib libcmocka-dev libsrtp2-dev libjansson-dev libspandsp2 clang-14 libclang-rt-14-dev valgrind openssl python3-pip python3-cryptography python3-openssl" ;;
	deps-webrtc) echo "$build $webrtc libopus-dev" ;;
	deps-lint) echo "$build $lint libxml2-dev libcmocka-dev libsrtp2-dev libjansson-dev valgrind" ;;
	deps-bench) echo "$build pocl-opencl-icd libsrtp2-dev libipsec-mb-dev dpkg-dev python3-matplotlib openssl python3-openssl" ;;
	deps-zrtp) echo "$build libbzrtp-dev maven default-jdk-headless" ;;
	deps-codecs) echo "$build $codecs" ;;
	deps-ng911) echo "$build $run $module $ng911 libsrtp2-1" ;;
	deps-module) echo "$build $module" ;;
	deps-kernel) echo "$build $kernel" ;;
	deps-bench-kernel) echo "$build $kernel $bench_kernel" ;;
	deps-kernel-debug) echo "$build $kernel $kernel_debug" ;;
	deps-deb) echo "$build $deb $codecs" ;;
	deps-check-deb) echo "$build $deb $codecs debootstrap systemd iproute2 procps" ;;
	*)
		echo "deps.sh: unknown purpose \"$1\": deps, or deps- and test, webrtc, demo, lint, bench, zrtp, ng911, codecs, module, kernel, bench-kernel, kernel-debug, deb or check-deb" >&2
		return 1
		;;
	esac
}

not_installed() {
	for package; do
		status=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
		case $status in
		ii*) ;;
		*) echo "$package" ;;
		esac
	done
}

policy=/usr/sbin/policy-rc.d

# Newly installed packages must not start services: only their programs are needed. $1: the units that the machine had before.
quiet_services() {
	for unit in kamailio rtpengine-daemon rtpengine-recording-daemon ngcp-rtpengine-daemon ngcp-rtpengine-recording-daemon redis-server prometheus postgresql strongswan; do
		case " $1 " in
		*" $unit.service "*) continue ;;
		esac
		[ -e "/lib/systemd/system/$unit.service" ] || continue
		# It works only for a package's own scripts, so it is told a name.
		DPKG_MAINTSCRIPT_PACKAGE=$unit deb-systemd-helper disable "$unit.service" >/dev/null 2>&1 || true
	done
}

# apt_get LOG ARGUMENT...: runs apt-get with its output in LOG. If another process holds a lock of apt or dpkg, it retries up to
# LOCK_TRIES times every 5 s, because a fresh machine often updates itself. apt's own option waits for the lock of dpkg only, not for that of its lists.
LOCK_TRIES=${LOCK_TRIES:-120}

apt_get() {
	log=$1
	shift
	tries=0
	until apt-get -q -o DPkg::Lock::Timeout=600 "$@" >"$log" 2>&1; do
		grep -qE 'Could not get lock|Unable to (acquire|lock)' "$log" || return 1
		tries=$((tries + 1))
		[ "$tries" -le "$LOCK_TRIES" ] || return 1
		[ "$tries" -gt 1 ] || echo "waiting: another process holds the lock of apt or dpkg"
		sleep 5
	done
}

install_for() {
	packages=$(packages_for "$1")
	# shellcheck disable=SC2086 # a list of names
	want=$(not_installed $packages)
	[ -n "$want" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		echo "missing: $(echo "$want" | tr '\n' ' '). Run: sudo make $1" >&2
		return 1
	fi
	echo "installing: $(echo "$want" | tr '\n' ' ')"
	made=
	if [ ! -e $policy ]; then
		made=yes
		trap 'rm -f $policy' EXIT
		trap 'exit 1' INT TERM
		printf '#!/bin/sh\nexit 101\n' >$policy
		chmod 755 $policy
	fi
	log=$(mktemp)
	# shellcheck disable=SC2012 # names of units have no blanks
	units=$(ls /lib/systemd/system 2>/dev/null | tr '\n' ' ')
	export DEBIAN_FRONTEND=noninteractive
	# shellcheck disable=SC2086
	if ! { apt_get "$log" update && apt_get "$log" install -y --no-install-recommends $want; }; then
		tail -20 "$log" >&2
		rm -f "$log"
		echo "deps.sh: apt-get failed, see above" >&2
		return 1
	fi
	rm -f "$log"
	case " $(echo "$want" | tr '\n' ' ') " in
	*" kamailio "* | *" rtpengine-daemon "* | *" redis-server "* | *" prometheus "* | *" postgresql-postgis "* | *" charon-systemd "*) quiet_services "$units" ;;
	esac
	[ -z "$made" ] || rm -f $policy
}

case ${1:-} in
missing)
	shift
	missing_for_build "$@"
	;;
install)
	install_for "${2:-deps}"
	;;
*)
	sed -n '3,6s/^# *//p' "$0" >&2
	exit 2
	;;
esac
