/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Quality of a terminal's media, as the other terminal reports it by RTCP. Written by the worker
 * only; read by any thread. */
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

struct media_quality { /* quality of the media that a stream's terminal sends */
	uint64_t samples;
	uint32_t lost; /* packets, cumulative, as last reported */
	uint32_t mean[QUALITY_FIELDS], low[QUALITY_FIELDS], high[QUALITY_FIELDS]; /* by MOS */
	uint64_t low_ns, high_ns; /* CLOCK_REALTIME, when */
};

#define RTCP_MOS_BUCKETS 8 /* MOS below 1.5, 2, 2.5 ... 4.5, and above */

struct media_quality_totals { /* of a worker */
	uint64_t reports, mos_sum, mos[RTCP_MOS_BUCKETS];
	const struct hist *jitter_us, *rtt_us, *loss; /* loss: percent * 100 */
};

/* A report that was relayed, for subscribers of all reports. */
struct media_rtcp_report {
	uint64_t t_ns;
	uint32_t stream; /* the stream that received it */
	struct endpoint src;
	struct rtcp_info info;
};

/* Any thread. */
void media_stream_quality(const struct media *m, uint32_t stream, struct media_quality *out);
void media_quality_totals(const struct media *m, struct media_quality_totals *out);
/* Control thread: also writes reports to this ring of struct media_rtcp_report, while it has room.
 * The ring must outlive the worker. */
void media_rtcp_tap(struct media *m, struct ring *tap);

/* Called by complete.c for a committed RTCP packet. */
void media_rtcp_seen(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j);
/* Where an audio session ends RTCP. Reads RTCP of the stream's terminal, decrypted and
 * committed. */
void media_rtcp_ended(struct media *m, uint32_t stream, const struct packet_in *in,
	const uint8_t *text, uint32_t len);
/* Reads our own RTCP for the stream's terminal, before it is encrypted: what arrived from it. */
void media_rtcp_said(
	struct media *m, uint32_t stream, const uint8_t *text, uint32_t len, uint64_t t_ns);
/* For media.c. */
int rtcp_stats_create(struct rtcp_stats **out, uint32_t streams);
void rtcp_stats_destroy(struct rtcp_stats *r);
void rtcp_stats_reset(struct rtcp_stats *r, uint32_t stream);
/* For create.c: media_handles_touch(). */
void rtcp_stats_touch(struct rtcp_stats *r, uint32_t from, uint32_t to);

#endif
