/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets of the network through prepare and complete, between two sides of any suites, in bursts
 * of any size. The first bytes choose suites, MKI and what is done to the call; then packets: a
 * byte that says where to and what the engine found, a length, bytes. The engine may call any
 * forgery authentic, so that what lies behind it is reached. Whatever comes: a job stays in its
 * slot, and no index is sent twice under a key. */
#include <stdlib.h>

#include "media/state.h"
#include "packet/arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { BURST = 8, KEYS = 64, SENT = 4096, PORTS = 4 };

static struct {
	struct media *m;
	struct arena a;
	struct packet_in in[BURST];
	struct packet_out out[BURST];
	uint32_t status[BURST], n;
	struct sent {
		uint64_t index;
		uint32_t key, ssrc;
		bool rtcp;
	} sent[SENT];
	uint32_t sents;
} f;

static void must(bool ok)
{
	if (!ok)
		abort();
}

static struct media_crypto crypto(enum srtp_suite_id suite, uint32_t slot, uint8_t how)
{
	struct media_crypto c = {.suite = suite};

	if (suite == SUITE_PLAIN)
		return c;
	c.keys = 1;
	c.mki_len = how & 3;
	c.key[0].slot = slot;
	c.clear_rtp = how & 4;
	c.no_rtp_auth = how & 8 && srtp_suite_get(suite)->auth != XC_AUTH_GCM;
	return c;
}

static void stream(uint32_t id, uint32_t ctx, uint32_t rtp_to, uint32_t rtcp_to, uint8_t how)
{
	struct media_cmd c = {.type = MEDIA_STREAM_SET,
		.id = id,
		.now_ns = 1,
		.stream = {.local = {.port = (uint16_t)(30000 + id)},
			.rtp = rtp_to != MEDIA_NONE,
			.rtcp = true,
			.ctx = ctx,
			.rtp_to = rtp_to,
			.rtcp_to = rtcp_to,
			.learning = (enum media_learning)(how & 3),
			.strict_source = how & 4,
			.media_handover = how & 8,
			.gate = how & 16 ? (uint8_t)(how >> 4) : 0,
			.quiet = MEDIA_QUIET_PCMU | MEDIA_QUIET_PCMA,
			.events = {0, 1ull << 37},
			.remote = {.family = AF_INET,
				.addr = {192, 0, 2, (uint8_t)id},
				.port = 4000}}};

	if (id == 0)
		c.stream.copy[0] = 4; /* stream 3 gets copies */
	c.stream.listener = id == 3;
	must(media_command(f.m, &c) == 0);
}

static void set_up(const uint8_t how[6])
{
	struct media_config cfg = {.max_ctx = 3,
		.max_stream = PORTS,
		.port_min = 30000,
		.port_max = 30007,
		.local_addrs = 1,
		.burst_max = BURST,
		.key_slots = KEYS,
		.replay_window = how[3] & 128 ? 1024 : 0};

	must(media_create(&f.m, &cfg) == 0);
	for (uint32_t i = 0; i < 3; i++) {
		enum srtp_suite_id suite = how[i] % SUITE_COUNT;
		struct media_cmd c = {.type = MEDIA_CTX_SET,
			.id = i,
			.ctx = {.rx = crypto(suite, 2 + 4 * i, how[3]),
				.tx = crypto(suite, 4 + 4 * i, how[3]),
				.rx_new = true,
				.tx_new = true}};

		must(media_command(f.m, &c) == 0);
	}
	stream(0, 0, 1, 2, how[4]);
	stream(1, 1, 0, MEDIA_NONE, how[5]);
	stream(2, 1, MEDIA_NONE, 0, how[5]);
	stream(3, 2, MEDIA_NONE, MEDIA_NONE, how[4] & 15);
}

/* Under this key, of this SSRC (of SRTCP: of any). */
static void sent_once(uint32_t key, uint32_t ssrc, uint64_t index, bool rtcp)
{
	struct sent s = {.index = index, .key = key, .ssrc = rtcp ? 0 : ssrc, .rtcp = rtcp};

	for (uint32_t i = 0; i < f.sents; i++)
		must(f.sent[i].index != s.index || f.sent[i].key != s.key ||
			f.sent[i].ssrc != s.ssrc || f.sent[i].rtcp != s.rtcp);
	if (f.sents < SENT)
		f.sent[f.sents++] = s;
}

static void check_job(const struct xc_job *j)
{
	uint32_t in = j->in_off % ARENA_SLOT_LEN, out = j->out_off % ARENA_SLOT_LEN;
	uint32_t len = j->hdr_len + j->body_len;

	must(j->in_off / ARENA_SLOT_LEN < BURST && j->out_off / ARENA_SLOT_LEN < BURST);
	must(in + len <= ARENA_SLOT_LEN && in + j->rx_tag_off <= ARENA_SLOT_LEN);
	must(out + len <= ARENA_SLOT_LEN && out + j->tx_tag_off + 16 <= ARENA_SLOT_LEN);
	must(j->rx_key < KEYS && j->tx_key < KEYS);
	must(j->rx_index <= SRTP_INDEX_MAX && j->tx_index <= SRTP_INDEX_MAX);
}

static void run(void)
{
	uint32_t jobs = media_prepare(f.m, &f.a, f.in, f.n, f.a.job), outs, status[BURST];

	must(jobs <= BURST);
	for (uint32_t i = 0; i < jobs; i++) {
		check_job(&f.a.job[i]);
		status[i] = f.status[f.a.job[i].in_off / ARENA_SLOT_LEN];
	}
	outs = media_complete(f.m, &f.a, f.in,
		&(struct batch){.job = f.a.job, .status = status, .n = jobs}, f.out);
	must(outs <= jobs);
	for (uint32_t i = 0; i < outs; i++) {
		const struct xc_job *j = f.a.job;

		while (j->out_off != f.out[i].out_off)
			must(++j < f.a.job + jobs);
		must(f.out[i].len <= ARENA_MAX_PACKET && f.out[i].dst.port);
		if (j->tx_key >= 2)
			sent_once(j->tx_key, j->ssrc, j->tx_index, j->flags & XC_JOB_RTCP);
	}
	media_sent(f.m, f.in, f.out, outs);
	f.n = 0;
}

static void packet(uint8_t what, const uint8_t *p, uint32_t len)
{
	uint32_t slot = media_first_slot(f.m) + f.n;
	struct packet_in *in = &f.in[f.n];

	*in = (struct packet_in){.local = {.port = (uint16_t)(30000 + (what & 7))},
		.src = {.family = AF_INET,
			.addr = {192, 0, 2, what & 3},
			.port = 4000 + (what >> 5 & 1)},
		.slot = slot,
		.in_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.len = len,
		.t_ns = 1000};
	memcpy(f.a.in + in->in_off, p, min_u32(len, ARENA_MAX_PACKET));
	f.status[f.n++] = what & 64 ? XC_OK : XC_BAD_TAG;
	if (what & 128 || f.n == media_burst_max(f.m))
		run();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t at = 6;

	if (len < at)
		return 0;
	if (!f.a.in)
		must(arena_create(&f.a, BURST, KEYS) == 0);
	f.n = f.sents = 0;
	set_up(data);
	while (at + 3 <= len) {
		uint32_t n = be16(data + at + 1) % (ARENA_MAX_PACKET + 1);

		/* A packet that is cut by the end is shortened. */
		n = min_u32(n, (uint32_t)(len - at - 3));
		packet(data[at], data + at + 3, n);
		at += 3 + n;
	}
	if (f.n)
		run();
	media_destroy(f.m);
	return 0;
}
