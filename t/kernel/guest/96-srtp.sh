#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The ciphers of SRTP in the kernel (t/kernel/srtp.py): the module measures while it is loaded.
# shellcheck source=t/kernel/guest/lib.sh
. /guest/lib.sh
[ -e /srtp_bench.ko ] || exit 0
check "the ciphers are measured" insmod /srtp_bench.ko
dmesg | grep srtp_bench: | sed 's/^/# /'
