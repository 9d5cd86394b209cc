/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gives OpenSSL the rig's clock: this gettimeofday() replaces that of the C library. A test
 * includes it. In dtls_rig.c it would reach every test, because all link with that library. */
#ifndef DTLS_RIG_CLOCK_H
#define DTLS_RIG_CLOCK_H

#include <sys/time.h>

#include "dtls_rig.h"

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	uint64_t ns = dtls_rig_wall_ns();

	(void)zone;
	tv->tv_sec = (time_t)(ns / 1000000000u);
	tv->tv_usec = (suseconds_t)(ns % 1000000000u / 1000);
	return 0;
}

#endif
