#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The guest itself, and the module in and out again.
# shellcheck source=t/kernel/guest/lib.sh
. /guest/lib.sh
check "namespaces and veth are there" sh -c 'ip netns add a && ip link add x type veth peer name y netns a && ip link del x && ip netns del a'
check "nftables hands packets to queues" sh -c 'nft add table inet t && nft "add chain inet t c { type filter hook input priority 0; }" &&
	nft add rule inet t c udp dport 9 queue num 1 bypass && nft delete table inet t'
[ -e /nf_xcipher.ko ] || exit 0
check "the module loads" insmod /nf_xcipher.ko
check "the module unloads" rmmod nf_xcipher
check "the module loads again" insmod /nf_xcipher.ko
