/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How well a terminal's packets arrive at the other one, as that one reports by RTCP. Kept by the
 * worker, one writer; read by anybody without stopping it. */
#ifndef MEDIA_RTCP_STATS_H
#define MEDIA_RTCP_STATS_H

#include "base/endpoint.h"
#include "base/hist.h"
#include "base/ring.h"
#include "packet/arena.h"
#include "proto/rtcp.h"

struct media;
struct packet_in;
struct note;
struct arena;
struct xc_job;
struct rtcp_stats;

/* X(id): MOS * 100; round trip from terminal to terminal, and of the reporting terminal's leg, us;
 * jitter, us; lost, percent * 100 */
#define MEDIA_QUALITY_FIELDS(X) X(MOS) X(RTT) X(RTT_LEG) X(JITTER) X(LOSS)
enum media_quality_field {
#define X(id) QUALITY_##id,
	MEDIA_QUALITY_FIELDS(X)
#undef X
		QUALITY_FIELDS
};

struct media_quality { /* of what a stream's terminal sends */
	uint64_t samples;
	uint32_t lost; /* packets, as last reported */
	uint32_t mean[QUALITY_FIELDS], low[QUALITY_FIELDS], high[QUALITY_FIELDS]; /* by MOS */
	uint64_t low_ns, high_ns; /* CLOCK_REALTIME, when */
};

#define RTCP_MOS_BUCKETS 8 /* MOS below 1.5, 2, 2.5 ... 4.5, and the rest */

struct media_quality_totals { /* of a worker */
	uint64_t reports, mos_sum, mos[RTCP_MOS_BUCKETS];
	const struct hist *jitter_us, *rtt_us, *loss; /* loss: percent * 100 */
};

/* A report as it passed, for whoever wants to have them all. */
struct media_rtcp_report {
	uint64_t t_ns;
	uint32_t stream; /* that it came in on */
	struct endpoint src;
	struct rtcp_info info;
};

/* Any thread. */
void media_stream_quality(const struct media *m, uint32_t stream, struct media_quality *out);
void media_quality_totals(const struct media *m, struct media_quality_totals *out);
/* Control thread: reports also go into this ring of struct media_rtcp_report, as long as there is
 * room. It stays until the worker has ended. */
void media_rtcp_tap(struct media *m, struct ring *tap);

/* For complete.c: an RTCP packet that was committed. */
void media_rtcp_seen(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j);
/* For media.c. */
int rtcp_stats_create(struct rtcp_stats **out, uint32_t streams);
void rtcp_stats_destroy(struct rtcp_stats *r);
void rtcp_stats_reset(struct rtcp_stats *r, uint32_t stream);

#endif
