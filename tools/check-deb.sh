#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# check-deb.sh DIR [RELEASE]: builds the packages, then installs, upgrades, removes and purges them in a fresh minimal Debian (debootstrap,
# kept in DIR for the next time), with a mount namespace of its own. The kernel module is built there for Debian's kernel, and the unit
# started under a systemd of its own (t/systemd/run.py). With RELEASE (trixie, ...) the packages are built in such a Debian too; without
# it they are built on this machine, for bookworm. Needs root and the network; changes nothing of this machine.
set -eu
# make's variables must not reach packages that build something.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL CC

dir=${1:?usage: check-deb.sh DIR [RELEASE]}
release=${2:-}
[ "$(id -u)" = 0 ] || { echo "check-deb.sh: a chroot needs root" >&2; exit 1; }
if [ -z "${CHECK_DEB_INSIDE:-}" ]; then
	mkdir -p "$dir"
	[ -n "${CHECK_DEB_BUILT:-}$release" ] || tools/deb.sh "$dir"
	export CHECK_DEB_INSIDE=1
	exec unshare --mount --pid --fork --kill-child --mount-proc "$0" "$dir" "$release"
fi

dir=$(cd "$dir" && pwd)
base=$dir/base.tar root=$dir/root
say() { printf 'check-deb: %s\n' "$*"; }
# shellcheck disable=SC2016 # apt expands these
mirror=$(apt-get indextargets --format '$(CREATED_BY)|$(ORIGIN)|$(REPO_URI)' | sed -n 's/^Packages|Debian|//p' | grep -v security | head -1)
if [ ! -e "$base" ]; then
	say "bootstrapping Debian ${release:-bookworm}"
	rm -rf "$root"
	debootstrap --variant=minbase --include=ca-certificates "${release:-bookworm}" "$root" "$mirror" >"$dir/debootstrap.log" 2>&1 || { tail -5 "$dir/debootstrap.log"; exit 1; }
	tar -C "$root" -cf "$base.tmp" . && mv "$base.tmp" "$base"
fi

fresh() { # a Debian in $root, as debootstrap made it
	rm -rf "$root"
	mkdir "$root"
	mount -t tmpfs -o size=6g none "$root"
	tar -C "$root" -xf "$base"
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	cp /etc/resolv.conf "$root/etc/"
	# The same archives and trust as this machine's
	cp -r /etc/apt/apt.conf.d /etc/apt/trusted.gpg.d "$root/etc/apt/" 2>/dev/null || true
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
}
in_root() { chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
apt() {
	in_root apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-confold "$@" >"$dir/apt.log" 2>&1 && return
	tail -20 "$dir/apt.log"
	find "$root/var/lib/dkms" -name make.log -exec tail -n 20 {} + 2>/dev/null || true
	say "apt-get $* failed"
	exit 1
}

if [ -n "$release" ] && [ -z "${CHECK_DEB_BUILT:-}" ]; then
	say "building in $release"
	fresh
	mkdir "$root/tree"
	git archive HEAD | tar -C "$root/tree" -xf -
	apt update
	apt install dpkg-dev lintian fakeroot
	apt build-dep /tree
	in_root sh -c 'cd /tree && tools/deb.sh /built' || { cp "$root/built/build.log" "$dir/" 2>/dev/null || true; exit 1; }
	rm -f "$dir"/*.deb
	cp "$root"/built/*.deb "$dir/"
	umount -R "$root"
fi
fresh
# Process ids repeat those outside, and namespaces are named after them: use a separate /run/netns.
mkdir -p /run/netns
mount -t tmpfs none /run/netns
mkdir "$root/debs" "$root/newer"
cp "$dir"/*.deb "$root/debs/"
# The same packages with a later version, because maintainer scripts run at an upgrade.
for deb in "$root"/debs/*.deb; do
	case $deb in *dbgsym*) rm "$deb"; continue ;; esac
	dpkg-deb -R "$deb" "$dir/repack"
	sed -i 's/^\(Version: .*\)$/\1+later1/' "$dir/repack/DEBIAN/control"
	dpkg-deb --root-owner-group -b "$dir/repack" "$root/newer/" >/dev/null
	rm -rf "$dir/repack"
done

relays() { # as the user that the unit has
	chroot --userspec=xcipher:xcipher "$root" env LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp POCL_CACHE_DIR=/tmp/pocl sh -s <debian/tests/relay
}

apt update
say "install"
# shellcheck disable=SC2046,SC2012 # we chose the names
apt install $(cd "$root" && ls debs/*.deb | sed 's|^|/|') linux-headers-amd64 procps iproute2 nftables iptables systemd systemd-sysv
in_root id xcipher >/dev/null
in_root sh -c 'xcipherd --version && xcipher-web --version && xcipherctl --version && xcipher-lost --version && xcipher-border --version && xcipher-bench --help >/dev/null'
[ "$(in_root stat -c '%a %U:%G' /etc/xcipher/xcipherd.conf)" = "640 root:xcipher" ] || { say "others can read the configuration"; exit 1; }
say "a call through the installed daemon"
relays
say "Kamailio takes the module"
in_root sh -s <debian/tests/module >"$dir/module.log" 2>&1 || { cat "$dir/module.log"; exit 1; }
systemd-analyze verify --man=no --root="$root" xcipherd.service xcipher-web.service xcipher-lost.service xcipher-border.service 2>&1 | grep -i xcipher && { say "systemd-analyze complains"; exit 1; }
figure=$(systemd-analyze security --offline=true --root="$root" xcipherd.service --no-pager | sed -n 's/.*exposure level for [^:]*: \([0-9.]*\) .*/\1/p')
say "systemd-analyze security: $figure"
[ -n "$release" ] || grep -qF "\`systemd-analyze security\`: $figure" README.md || { say "README.md says something else"; exit 1; }
say "the units under systemd"
/usr/bin/python3 t/systemd/run.py "$root"
say "dkms"
modules_of() { in_root sh -c 'find /lib/modules -name "nf_xcipher.ko*"'; }
kernel=$(in_root sh -c 'basename /lib/modules/*-amd64')
[ -n "$(modules_of)" ] || in_root dkms autoinstall -k "$kernel" >"$dir/dkms.log" 2>&1 || { cat "$dir/dkms.log"; exit 1; }
[ "$(modules_of | grep -c "/$kernel/")" = 1 ] || { say "dkms built no nf_xcipher for $kernel"; in_root dkms status; exit 1; }
say "$(in_root dkms status | tr '\n' ' ')"

say "upgrade"
sed -i 's/^#log-level = .*/log-level = 5/' "$root/etc/xcipher/xcipherd.conf"
in_root chmod 440 /etc/xcipher/xcipherd.conf
# shellcheck disable=SC2046,SC2012
apt install $(cd "$root" && ls newer/*.deb | sed 's|^|/|')
grep -q '^log-level = 5' "$root/etc/xcipher/xcipherd.conf" || { say "the upgrade lost the operator's configuration"; exit 1; }
[ "$(in_root stat -c '%a %U:%G' /etc/xcipher/xcipherd.conf)" = "440 root:xcipher" ] || { say "the upgrade changed the operator's mode"; exit 1; }
relays >/dev/null

names=$(cd "$dir" && for deb in *.deb; do case $deb in *dbgsym*) ;; *) echo "${deb%%_*}" ;; esac; done)
say "remove"
# shellcheck disable=SC2086
apt remove $names
grep -q '^log-level = 5' "$root/etc/xcipher/xcipherd.conf" || { say "removal took the configuration"; exit 1; }
[ ! -e "$root/usr/sbin/xcipherd" ] || { say "removal left the program"; exit 1; }
[ -z "$(modules_of)" ] || { say "removal left the kernel module"; exit 1; }
say "purge"
# shellcheck disable=SC2086
in_root dpkg --purge $names >"$dir/purge.log" 2>&1 || { cat "$dir/purge.log"; exit 1; } # those without conffiles are gone already
left=$(cd "$root" && find etc usr lib var/lib var/cache -iname '*xcipher*' ! -path 'var/lib/dpkg/*' ! -path 'var/cache/apt/*' ! -path 'var/lib/apt/*')
[ -z "$left" ] || { say "left after the purge:"; echo "$left"; exit 1; }
say "installed, used, upgraded, removed and purged"
