/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Included by a test, gives OpenSSL the rig's clock: its timer reads gettimeofday(), and this one
 * stands before that of the C library. It is not part of dtls_rig.c: the library of unit tests
 * would bring it into each test that reads the time. */
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
