/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads delay, jitter and loss from RTCP sender and receiver reports (RFC 3550 6.4, A.8). Between
 * two SRTP sides no report is in the clear. So authentic packets are decrypted a second time, by
 * OpenSSL's counter mode; RTCP is one packet in hundreds. Supports AES-CM and GCM, not F8. Writes
 * no state of the packet path, allocates nothing. */
#include "media/rtcp_stats.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "base/bigmem.h"
#include "base/secmem.h"
#include "media/state.h"
#include "packet/arena.h"

#define READ_MAX   512u /* bytes of a compound packet that are looked at: reports come first */
#define CLOCK_SURE 500000000ull
#define JITTER_MAX 10000000u      /* us */
#define SILENT_NS  30000000000ull /* without a report of the other terminal */

static const uint8_t zero_key[32];

/* Of a sender of RTP. */
struct sender {
	uint32_t lsr; /* of its last sender report */
	uint64_t lsr_ns;
	uint64_t ntp; /* of the first one, to find the clock rate */
	uint32_t rtp, hz;
};

struct seen {
	/* The worker's. */
	struct sender its, ours; /* this terminal, and an audio session that sends to it */
	/* Of its media at this relay, as an audio session reported to it. */
	uint32_t arrived_jitter_us, arrived_loss;
	uint64_t judged_ns; /* when its media were judged last by the other terminal */
	uint32_t leg_us;    /* round trip between this relay and the terminal */
	/* Readable by any thread: quality of this terminal's media, as the other one reports it. */
	_Atomic uint64_t samples, sum[QUALITY_FIELDS], low_ns, high_ns;
	_Atomic uint32_t lost, low[QUALITY_FIELDS], high[QUALITY_FIELDS];
};

struct rtcp_stats {
	struct seen *seen; /* [streams] */
	uint32_t streams;
	EVP_CIPHER *cipher[3]; /* by key length 16, 24, 32 */
	EVP_CIPHER_CTX *ctx[3];
	_Atomic(struct ring *) tap;
	_Atomic uint64_t reports, mos_sum, mos[RTCP_MOS_BUCKETS];
	struct hist jitter_us, rtt_us, loss;
};

static void bump(_Atomic uint64_t *v, uint64_t by)
{
	atomic_store_explicit(
		v, atomic_load_explicit(v, memory_order_relaxed) + by, memory_order_relaxed);
}

static void put32(_Atomic uint32_t *v, uint32_t to)
{
	atomic_store_explicit(v, to, memory_order_relaxed);
}

static void put64(_Atomic uint64_t *v, uint64_t to)
{
	atomic_store_explicit(v, to, memory_order_relaxed);
}

/* --- Parsing ---------------------------------------------------------------------------------- */

/* RFC 3711 4.1.1 with SRTCP's index (3.4); RFC 7714 9.1, whose counter mode starts at 2. */
static bool decrypt(struct rtcp_stats *r, const struct xc_key *k, const struct xc_job *j,
	const uint8_t *in, uint8_t *out, uint32_t len)
{
	unsigned which = (k->rounds - 10) / 2, at = k->cipher == XC_CIPHER_GCM ? 2 : 4;
	uint8_t iv[16], word[10] = {0};
	bool ok;
	int n;

	if (which > 2 || (k->cipher != XC_CIPHER_AES_CM && k->cipher != XC_CIPHER_GCM))
		return false;
	put_be32(word, j->ssrc);
	put_be32(word + 6, (uint32_t)j->rx_index);
	memcpy(iv, k->salt, sizeof(iv));
	for (unsigned i = 0; i < sizeof(word); i++)
		iv[at + i] ^= word[i];
	if (k->cipher == XC_CIPHER_GCM)
		put_be32(iv + 12, 2);
	/* The first round keys are the key. */
	ok = EVP_EncryptInit_ex2(r->ctx[which], NULL, k->rk, iv, NULL) == 1 &&
		EVP_EncryptUpdate(r->ctx[which], out, &n, in, (int)len) == 1 && n == (int)len;
	/* Leaves no key in the context. */
	return EVP_EncryptInit_ex2(r->ctx[which], NULL, zero_key, zero_key, NULL) == 1 && ok;
}

/* Decrypts the first bytes of the packet. Returns their number; 0 = not possible. */
static uint32_t clear_text(
	struct rtcp_stats *r, const struct arena *a, const struct xc_job *j, uint8_t out[READ_MAX])
{
	const struct xc_key *k = &a->key[j->rx_key];
	const uint8_t *in = a->in + j->in_off;
	uint32_t len = min_u32(j->hdr_len + j->body_len, READ_MAX);

	memcpy(out, in, len);
	if (k->cipher == XC_CIPHER_NULL || j->flags & XC_JOB_RX_CLEAR || len <= j->hdr_len)
		return len;
	return decrypt(r, k, j, in + j->hdr_len, out + j->hdr_len, len - j->hdr_len) ? len : 0;
}

/* --- Reports ---------------------------------------------------------------------------------- */

/* Finds the rate of a terminal's timestamps from two sender reports: the nearest known rate, if
 * near enough. */
static void learn_clock(struct sender *s, const struct rtcp_info *i)
{
	static const uint32_t known[] = {
		8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 90000};
	uint64_t elapsed = i->ntp - s->ntp;
	double hz;

	if (!s->ntp || i->ntp < s->ntp) {
		s->ntp = i->ntp;
		s->rtp = i->rtp;
		return;
	}
	if (elapsed >> 32 > 3600 || elapsed < (CLOCK_SURE << 32) / 1000000000ull)
		return;
	hz = (double)(i->rtp - s->rtp) / ((double)elapsed / 4294967296.0);
	for (size_t k = 0; k < ARRAY_LEN(known); k++)
		if (hz > known[k] * 0.97 && hz < known[k] * 1.03)
			s->hz = known[k];
	s->ntp = i->ntp;
	s->rtp = i->rtp;
}

static void copy_fields(_Atomic uint32_t *to, const uint32_t *v)
{
	for (int f = 0; f < QUALITY_FIELDS; f++)
		put32(&to[f], v[f]);
}

static void sample(
	struct rtcp_stats *r, struct seen *s, const uint32_t v[QUALITY_FIELDS], uint64_t t_ns)
{
	uint64_t n = atomic_load_explicit(&s->samples, memory_order_relaxed);
	uint32_t mos = v[QUALITY_MOS], bucket = mos < 150 ? 0 : (mos - 100) / 50;

	for (int f = 0; f < QUALITY_FIELDS; f++)
		bump(&s->sum[f], v[f]);
	if (!n || mos < atomic_load_explicit(&s->low[QUALITY_MOS], memory_order_relaxed)) {
		copy_fields(s->low, v);
		put64(&s->low_ns, t_ns);
	}
	if (!n || mos > atomic_load_explicit(&s->high[QUALITY_MOS], memory_order_relaxed)) {
		copy_fields(s->high, v);
		put64(&s->high_ns, t_ns);
	}
	put64(&s->samples, n + 1);
	bump(&r->reports, 1);
	bump(&r->mos_sum, mos);
	bump(&r->mos[bucket < RTCP_MOS_BUCKETS ? bucket : RTCP_MOS_BUCKETS - 1], 1);
	hist_add(&r->jitter_us, v[QUALITY_JITTER]);
	hist_add(&r->loss, v[QUALITY_LOSS]);
	if (v[QUALITY_RTT])
		hist_add(&r->rtt_us, v[QUALITY_RTT]);
}

/* The round trip between this relay and the terminal (RFC 3550 6.4.1), if its report refers to the
 * last sender report that reached it through us, or was ours. */
static void measure_leg(
	struct seen *from, const struct sender *of, const struct rtcp_block *b, uint64_t t_ns)
{
	uint64_t dlsr_ns = ((uint64_t)b->dlsr * 1000000000ull) >> 16;

	if (b->lsr && b->lsr == of->lsr && t_ns > of->lsr_ns + dlsr_ns &&
		t_ns - of->lsr_ns - dlsr_ns < 60000000000ull)
		from->leg_us = (uint32_t)((t_ns - of->lsr_ns - dlsr_ns) / 1000);
}

static uint32_t jitter_of(const struct sender *of, const struct rtcp_block *b)
{
	uint64_t us = (uint64_t)b->jitter * 1000000 / (of->hz ? of->hz : 8000);

	return us > JITTER_MAX ? JITTER_MAX : (uint32_t)us;
}

static void judge(struct rtcp_stats *r, struct seen *of, uint32_t v[QUALITY_FIELDS], uint64_t t_ns)
{
	v[QUALITY_MOS] = rtcp_mos(v[QUALITY_RTT], v[QUALITY_JITTER], v[QUALITY_LOSS]);
	sample(r, of, v, t_ns);
}

/* a report block about media that "of" sends */
static void take_block(struct rtcp_stats *r, struct seen *from, struct seen *of,
	const struct rtcp_block *b, uint64_t t_ns)
{
	uint32_t v[QUALITY_FIELDS] = {0};

	measure_leg(from, &of->its, b, t_ns);
	v[QUALITY_JITTER] = jitter_of(&of->its, b);
	v[QUALITY_LOSS] = b->fraction * 10000u / 256;
	v[QUALITY_RTT_LEG] = from->leg_us;
	v[QUALITY_RTT] = from->leg_us + of->leg_us;
	put32(&of->lost, b->lost > 0 ? (uint32_t)b->lost : 0);
	judge(r, of, v, t_ns);
}

/* Where an audio session ends RTCP, a terminal's report is about our packets. Loss and jitter
 * before the relay are added to it. */
static void take_ended(struct rtcp_stats *r, struct seen *from, struct seen *of,
	const struct rtcp_block *b, uint64_t t_ns)
{
	uint32_t v[QUALITY_FIELDS] = {0}, loss = b->fraction * 10000u / 256;

	measure_leg(from, &from->ours, b, t_ns);
	v[QUALITY_JITTER] = min_u32(jitter_of(&from->ours, b) + of->arrived_jitter_us, JITTER_MAX);
	v[QUALITY_LOSS] = loss + (10000 - loss) * of->arrived_loss / 10000;
	v[QUALITY_RTT_LEG] = from->leg_us;
	v[QUALITY_RTT] = from->leg_us + of->leg_us;
	of->judged_ns = t_ns;
	judge(r, of, v, t_ns);
}

static void heard_sender(struct sender *s, const struct rtcp_info *i, uint64_t t_ns)
{
	if (!i->sender)
		return;
	s->lsr = (uint32_t)(i->ntp >> 16);
	s->lsr_ns = t_ns;
	learn_clock(s, i);
}

static void give_report(struct rtcp_stats *r, const struct media_rtcp_report *report)
{
	struct ring *tap = atomic_load_explicit(&r->tap, memory_order_acquire);

	if (tap) /* ring full: this report is lost to the reader */
		ring_push(tap, report, 1);
}

void media_rtcp_ended(struct media *m, uint32_t stream, const struct packet_in *in,
	const uint8_t *text, uint32_t len)
{
	struct media_rtcp_report report = {.t_ns = in->t_ns, .stream = stream, .src = in->src};
	struct rtcp_stats *r = m->rtcp;
	uint32_t peer = m->stream[stream].cfg.rtcp_to;

	if (rtcp_read(&report.info, text, len))
		return;
	heard_sender(&r->seen[stream].its, &report.info, in->t_ns);
	for (uint32_t i = 0; i < report.info.blocks && peer < r->streams; i++)
		take_ended(r, &r->seen[stream], &r->seen[peer], &report.info.block[i], in->t_ns);
	give_report(r, &report);
}

void media_rtcp_said(
	struct media *m, uint32_t stream, const uint8_t *text, uint32_t len, uint64_t t_ns)
{
	struct rtcp_stats *r = m->rtcp;
	struct seen *s = &r->seen[stream];
	uint32_t v[QUALITY_FIELDS] = {0};
	struct rtcp_info info;

	if (rtcp_read(&info, text, len))
		return;
	heard_sender(&s->ours, &info, t_ns);
	if (!info.blocks)
		return;
	s->arrived_jitter_us = jitter_of(&s->its, &info.block[0]);
	s->arrived_loss = info.block[0].fraction * 10000u / 256;
	put32(&s->lost, info.block[0].lost > 0 ? (uint32_t)info.block[0].lost : 0);
	s->judged_ns = s->judged_ns ? s->judged_ns : t_ns;
	if (t_ns < s->judged_ns + SILENT_NS)
		return;
	/* The other terminal reports nothing: judge what arrived here. */
	v[QUALITY_JITTER] = s->arrived_jitter_us;
	v[QUALITY_LOSS] = s->arrived_loss;
	v[QUALITY_RTT] = v[QUALITY_RTT_LEG] = s->leg_us;
	judge(r, s, v, t_ns);
}

void media_rtcp_seen(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j)
{
	struct rtcp_stats *r = m->rtcp;
	struct seen *from = &r->seen[n->stream], *of = &r->seen[n->to];
	struct media_rtcp_report report = {.t_ns = in->t_ns, .stream = n->stream, .src = in->src};
	uint8_t text[READ_MAX];
	uint32_t len = clear_text(r, a, j, text);

	if (!len || rtcp_read(&report.info, text, len))
		return;
	heard_sender(&from->its, &report.info, in->t_ns);
	for (uint32_t i = 0; i < report.info.blocks; i++)
		take_block(r, from, of, &report.info.block[i], in->t_ns);
	give_report(r, &report);
}

/* --- Reading from other threads --------------------------------------------------------------- */

void media_stream_quality(const struct media *m, uint32_t stream, struct media_quality *out)
{
	const struct seen *s;

	*out = (struct media_quality){0};
	if (stream >= m->rtcp->streams)
		return;
	s = &m->rtcp->seen[stream];
	out->samples = atomic_load_explicit(&s->samples, memory_order_relaxed);
	if (!out->samples)
		return;
	out->lost = atomic_load_explicit(&s->lost, memory_order_relaxed);
	for (int f = 0; f < QUALITY_FIELDS; f++) {
		out->mean[f] = (uint32_t)(atomic_load_explicit(&s->sum[f], memory_order_relaxed) /
			out->samples);
		out->low[f] = atomic_load_explicit(&s->low[f], memory_order_relaxed);
		out->high[f] = atomic_load_explicit(&s->high[f], memory_order_relaxed);
	}
	out->low_ns = atomic_load_explicit(&s->low_ns, memory_order_relaxed);
	out->high_ns = atomic_load_explicit(&s->high_ns, memory_order_relaxed);
}

void media_quality_totals(const struct media *m, struct media_quality_totals *out)
{
	const struct rtcp_stats *r = m->rtcp;

	*out = (struct media_quality_totals){
		.reports = atomic_load_explicit(&r->reports, memory_order_relaxed),
		.mos_sum = atomic_load_explicit(&r->mos_sum, memory_order_relaxed),
		.jitter_us = &r->jitter_us,
		.rtt_us = &r->rtt_us,
		.loss = &r->loss};
	for (int i = 0; i < RTCP_MOS_BUCKETS; i++)
		out->mos[i] = atomic_load_explicit(&r->mos[i], memory_order_relaxed);
}

void media_rtcp_tap(struct media *m, struct ring *tap)
{
	atomic_store_explicit(&m->rtcp->tap, tap, memory_order_release);
}

/* --- Life ------------------------------------------------------------------------------------- */

static bool ciphers_create(struct rtcp_stats *r)
{
	static const char *const names[] = {"AES-128-CTR", "AES-192-CTR", "AES-256-CTR"};
	for (int i = 0; i < 3; i++) {
		r->cipher[i] = EVP_CIPHER_fetch(NULL, names[i], NULL);
		r->ctx[i] = EVP_CIPHER_CTX_new();
		/* make the contexts allocate now, not later */
		if (!r->cipher[i] || !r->ctx[i] ||
			EVP_EncryptInit_ex2(r->ctx[i], r->cipher[i], zero_key, zero_key, NULL) != 1)
			return false;
	}
	return true;
}

int rtcp_stats_create(struct rtcp_stats **out, uint32_t streams)
{
	struct rtcp_stats *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->streams = streams;
	r->seen = bigmem_alloc(streams, sizeof(*r->seen));
	if (!r->seen || !ciphers_create(r)) {
		rtcp_stats_destroy(r);
		return -ENOMEM;
	}
	*out = r;
	return 0;
}

void rtcp_stats_destroy(struct rtcp_stats *r)
{
	if (!r)
		return;
	for (int i = 0; i < 3; i++) {
		EVP_CIPHER_CTX_free(r->ctx[i]);
		EVP_CIPHER_free(r->cipher[i]);
	}
	bigmem_free(r->seen, r->streams, sizeof(*r->seen));
	free(r);
}

void rtcp_stats_touch(struct rtcp_stats *r, uint32_t from, uint32_t to)
{
	bigmem_touch(r->seen, sizeof(*r->seen), from, to);
}

void rtcp_stats_reset(struct rtcp_stats *r, uint32_t stream)
{
	struct seen *s = &r->seen[stream];

	s->its = s->ours = (struct sender){0};
	s->leg_us = s->arrived_jitter_us = s->arrived_loss = 0;
	s->judged_ns = 0;
	put64(&s->samples, 0);
	put64(&s->low_ns, 0);
	put64(&s->high_ns, 0);
	put32(&s->lost, 0);
	for (int f = 0; f < QUALITY_FIELDS; f++) {
		put64(&s->sum[f], 0);
		put32(&s->low[f], 0);
		put32(&s->high[f], 0);
	}
}
