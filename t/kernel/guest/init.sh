#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# First and only process tree of the guest: mounts, stock modules, the tests in their order, the TAP plan, the end.
export PATH=/build:/build/t:/usr/bin:/usr/sbin:/bin:/sbin
/bin/busybox mkdir -p /bin /sbin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
case $(uname -r) in *-kasan) export PATIENCE=10 ;; esac
[ "$(nproc)" = 1 ] && export IDLE_PAUSE=0.5 # t/e2e/idle.py
cd / || exit 1
for m in /modules/*.ko*; do
	[ -e "$m" ] || continue # all is built in
	insmod "$m" || echo "# $m does not load"
done
ip link set lo up
echo 0 >/tmp/tap-number
: >/tmp/tap-failed
while read -r t; do
	echo "# $t, guest up $(cut -d' ' -f1 /proc/uptime) s"
	"/guest/$t" </dev/null || {
		# shellcheck source=t/kernel/guest/lib.sh
		. /guest/lib.sh
		not_ok "$t ran to its end"
	}
done </guest/tests
echo "1..$(cat /tmp/tap-number)"
dmesg | grep -E 'BUG|WARNING|nf_xcipher.*(leak|refer)' | head -20
[ -s /tmp/tap-failed ] && echo "GUEST-RC 1" || echo "GUEST-RC 0"
sync
reboot -f # qemu ends by it, also where there is no ACPI to power off by
