/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rig of the media tests (media_rig.h): builds packets with the scalar reference and takes them
 * through prepare and complete. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "batch/engine.h"
#include "media/short_tag.h"
#include "packet/arena.h"
#include "srtp/kdf.h"
#include "srtp/ref.h"

struct srtp_master rig_master(uint32_t slot, enum srtp_suite_id suite)
{
	struct srtp_master m = {.suite = suite};

	memset(m.key, (int)(slot * 17 + 1), sizeof(m.key));
	memset(m.salt, (int)(slot * 5 + 3), sizeof(m.salt));
	return m;
}

void rig_key(struct rig *r, uint32_t slot, enum srtp_suite_id suite)
{
	struct srtp_master m = rig_master(slot, suite);

	assert_int_equal(srtp_key_fill(&r->a.key[slot], &m), 0);
}

void rig_key_new(struct rig *r, uint32_t slot, uint8_t kdr, uint64_t lifetime)
{
	enum srtp_suite_id suite = slot == B_TX || slot == B_RX ? r->suite_b : r->suite_a;
	struct srtp_master m = rig_master(slot, suite);
	struct media_cmd cmd = {.type = MEDIA_KEY_SET,
		.id = slot,
		.key = {.lifetime = lifetime, .kdr = kdr, .suite = suite}};

	r->kdr[slot] = kdr;
	for (uint32_t i = 0; kdr && i < MEDIA_EPOCHS; i++)
		cmd.key.pair[i] = LENT + (slot / 2 - 1) % 4 * 2 * MEDIA_EPOCHS + 2 * i;
	if (kdr)
		srtp_vault_fill(&r->a.key[cmd.key.pair[0]], &m);
	assert_int_equal(media_command(r->m, &cmd), 0);
}

/* Gives a terminal the plain pair, then the session keys that the slot's master key has at this
 * index. */
static const struct xc_key *terminal_keys(
	const struct rig *r, uint32_t slot, enum srtp_suite_id suite, uint64_t index, bool rtcp)
{
	static struct xc_key keys[4];
	struct srtp_master m = rig_master(slot, suite);
	struct srtp_session_keys k;

	memcpy(keys, r->a.key, 2 * sizeof(keys[0]));
	memcpy(keys + 2, r->a.key + slot, 2 * sizeof(keys[0]));
	if (slot && slot < LENT && r->kdr[slot]) {
		memset(&keys[2 + rtcp], 0, sizeof(keys[0]));
		assert_int_equal(srtp_kdf(&k, &m, rtcp, index >> r->kdr[slot]), 0);
		srtp_slot_fill(&keys[2 + rtcp], srtp_suite_get(suite), &k, rtcp);
	}
	return keys;
}

static int key_changed(void *arg, uint32_t slot)
{
	struct rig *r = arg;

	assert_true(slot >= LENT && slot < KEYS && slot % 2 == 0);
	r->derivations++;
	return r->queue ? engine_serial.key_changed(r->queue, slot) : 0;
}

struct media_crypto rig_crypto(const struct rig *r, uint32_t slot, enum srtp_suite_id suite)
{
	struct media_crypto c = {.suite = suite};

	if (suite != SUITE_PLAIN) {
		c.keys = 1;
		c.key[0].slot = slot;
		c.mki_len = r->mki_len;
		memset(c.key[0].mki, 0xa0 + (int)slot, r->mki_len);
	}
	return c;
}

void rig_ctx(struct rig *r, uint32_t id, struct rig_keys keys)
{
	struct media_cmd cmd = {.type = MEDIA_CTX_SET,
		.id = id,
		.ctx = {.rx = rig_crypto(r, keys.rx, keys.suite),
			.tx = rig_crypto(r, keys.tx, keys.suite),
			.rx_new = keys.rx_new,
			.tx_new = keys.tx_new}};

	assert_int_equal(media_command(r->m, &cmd), 0);
}

void rig_ctx_plain(struct rig *r, uint32_t id)
{
	struct media_cmd cmd = {
		.type = MEDIA_CTX_SET, .id = id, .ctx = {.rx_new = true, .tx_new = true}};

	assert_int_equal(media_command(r->m, &cmd), 0);
}

struct media_cmd rig_stream_cmd(uint32_t id, uint16_t port, uint32_t c, uint32_t rtp_to,
	uint32_t rtcp_to, const char *remote)
{
	struct media_cmd cmd = {.type = MEDIA_STREAM_SET,
		.id = id,
		.now_ns = 1,
		.stream = {.local = {.port = port},
			.rtp = rtp_to != MEDIA_NONE,
			.rtcp = rtcp_to != MEDIA_NONE,
			.ctx = c,
			.rtp_to = rtp_to,
			.rtcp_to = rtcp_to,
			.learning = MEDIA_LEARN_IMMEDIATE,
			.strict_source = true}};

	assert_int_equal(endpoint_parse(&cmd.stream.remote, str_from(remote)), 0);
	return cmd;
}

void rig_stream(struct rig *r, struct media_cmd cmd)
{
	assert_int_equal(media_command(r->m, &cmd), 0);
}

/* Side A: RTP and RTCP on one port. Side B: two ports. */
static struct rig *make(enum srtp_suite_id suite_a, enum srtp_suite_id suite_b, uint8_t mki_len,
	uint32_t window, uint32_t bursts)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct media_config cfg = {.max_ctx = 4,
		.max_stream = 6,
		.port_min = 30000,
		.port_max = 30007,
		.local_addrs = 1,
		.burst_max = SLOTS / bursts,
		.bursts = bursts,
		.key_slots = KEYS,
		.replay_window = window,
		.key_changed = key_changed,
		.key_changed_arg = r};

	assert_non_null(r);
	r->suite_a = suite_a;
	r->suite_b = suite_b;
	r->mki_len = mki_len;
	assert_int_equal(media_create(&r->m, &cfg), 0);
	assert_int_equal(arena_create(&r->a, SLOTS, KEYS), 0);
	rig_key(r, A_TX, suite_a);
	rig_key(r, A_RX, suite_a);
	rig_key(r, A_TX2, suite_a);
	rig_key(r, B_TX, suite_b);
	rig_key(r, B_RX, suite_b);
	rig_ctx(r, 0, (struct rig_keys){A_TX, A_RX, suite_a, true, true});
	rig_ctx(r, 1, (struct rig_keys){B_TX, B_RX, suite_b, true, true});
	rig_stream(r, rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000"));
	rig_stream(r, rig_stream_cmd(B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000"));
	rig_stream(r, rig_stream_cmd(B_RTCP, PORT_B_RTCP, 1, MEDIA_NONE, A, "192.0.2.2:5001"));
	return r;
}

struct rig *rig_new_window(
	enum srtp_suite_id suite_a, enum srtp_suite_id suite_b, uint8_t mki_len, uint32_t window)
{
	return make(suite_a, suite_b, mki_len, window, 1);
}

struct rig *rig_new_bursts(enum srtp_suite_id suite_a, enum srtp_suite_id suite_b, uint32_t bursts)
{
	return make(suite_a, suite_b, 0, 0, bursts);
}

struct rig *rig_new(enum srtp_suite_id suite_a, enum srtp_suite_id suite_b, uint8_t mki_len)
{
	return rig_new_window(suite_a, suite_b, mki_len, 0);
}

void rig_engine(struct rig *r)
{
	char err[128];

	assert_int_equal(
		engine_serial.open(&r->engine, &(struct engine_config){0}, err, sizeof(err)), 0);
	assert_int_equal(engine_serial.queue_create(&r->queue, r->engine, &r->a), 0);
	for (uint32_t slot = 2; slot < LENT; slot += 2)
		assert_int_equal(engine_serial.key_changed(r->queue, slot), 0);
}

void rig_free(struct rig *r)
{
	if (r->engine) {
		engine_serial.queue_destroy(r->queue);
		engine_serial.close(r->engine);
	}
	media_destroy(r->m);
	arena_destroy(&r->a);
	free(r);
}

/* A terminal's packet: plain bytes protected by the reference (a job from plain to SRTP). Returns
 * its length. */
uint32_t rig_protect(const struct rig *r, uint8_t *to, struct rig_plain plain)
{
	static uint8_t in[ARENA_SLOT_LEN], out[ARENA_SLOT_LEN];
	const struct srtp_suite *s = srtp_suite_get(plain.suite);
	uint32_t tag = plain.rtcp ? s->rtcp_tag_len : s->rtp_tag_len, word = plain.rtcp ? 4 : 0,
		 mki = r->mki_len;
	bool aead = s->auth == XC_AUTH_GCM;
	struct xc_job j = {.tx_index = plain.index,
		.tx_key = 2 + plain.rtcp,
		.rx_key = plain.rtcp,
		.hdr_len = plain.hdr,
		.body_len = plain.len - plain.hdr,
		.rx_tag_off = plain.len,
		.tx_tag_off = aead ? plain.len : plain.len + word + mki,
		.ssrc = be32(plain.packet + (plain.rtcp ? 4 : 8)),
		.flags = plain.rtcp ? XC_JOB_RTCP : 0};

	if (plain.suite == SUITE_PLAIN) {
		memcpy(to, plain.packet, plain.len);
		return plain.len;
	}
	memcpy(in, plain.packet, plain.len);
	assert_int_equal(
		srtp_ref_job(&j, terminal_keys(r, plain.slot, plain.suite, plain.index, plain.rtcp),
			in, out),
		XC_OK);
	memset(out + plain.len + word + (aead ? tag : 0), 0xa0 + (int)plain.slot, mki);
	memcpy(to, out, plain.len + word + mki + tag);
	return plain.len + word + mki + tag;
}

static const char *const source[] = {"192.0.2.1:4000", "192.0.2.2:5000", "192.0.2.2:5001"};

uint8_t *rig_slot(struct rig *r, uint32_t from, uint16_t port)
{
	struct packet_in *in = &r->in[r->n];

	*in = (struct packet_in){.local = {.port = port},
		.slot = r->first + r->n,
		.in_off = (r->first + r->n) * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.t_ns = 1000,
		.verdict = 0xff};
	assert_int_equal(endpoint_parse(&in->src, str_from(source[from])), 0);
	r->n++;
	return r->a.in + in->in_off;
}

void rig_plain_rtp(uint8_t p[172], uint32_t ssrc, uint64_t index)
{
	memset(p, (int)index, 172);
	p[0] = 0x80;
	p[1] = 8;
	put_be16(p + 2, (uint16_t)index);
	put_be32(p + 4, 160 * (uint32_t)(uint16_t)index);
	put_be32(p + 8, ssrc);
}

void rig_plain_rtcp(uint8_t p[28], uint32_t ssrc, uint32_t number)
{
	memset(p, (int)number, 28);
	p[0] = 0x80;
	p[1] = 200;
	put_be16(p + 2, 6);
	put_be32(p + 4, ssrc);
}

/* A's terminal sends the packet with this 48-bit index. Returns its bytes in the arena, so that a
 * test can damage them. */
uint8_t *rig_send(struct rig *r, uint32_t ssrc, uint64_t index, uint32_t slot)
{
	uint8_t p[172], *at = rig_slot(r, A, PORT_A);

	rig_plain_rtp(p, ssrc, index);
	r->in[r->n - 1].len =
		rig_protect(r, at, (struct rig_plain){p, 172, 12, slot, r->suite_a, index, false});
	return at;
}

uint8_t *rig_send_rtcp(struct rig *r, uint32_t ssrc, uint32_t index)
{
	uint8_t p[28], *at = rig_slot(r, A, PORT_A);

	rig_plain_rtcp(p, ssrc, index);
	r->in[r->n - 1].len =
		rig_protect(r, at, (struct rig_plain){p, 28, 8, A_TX, r->suite_a, index, true});
	return at;
}

/* Runs the burst through prepare, the engine and complete. */
uint32_t rig_prepare(struct rig *r)
{
	return media_prepare(r->m, &r->a, r->in, r->n, r->a.job);
}

void rig_complete(struct rig *r, uint32_t jobs)
{
	if (r->queue)
		assert_int_equal(
			engine_serial.run(r->queue,
				&(struct batch){.job = r->a.job, .status = r->a.status, .n = jobs}),
			0);
	for (uint32_t i = 0; i < jobs && !r->queue; i++)
		r->a.status[i] = srtp_ref_job(&r->a.job[i], r->a.key, r->a.in, r->a.out);
	r->outs = media_complete(r->m, &r->a, r->in,
		&(struct batch){.job = r->a.job, .status = r->a.status, .n = jobs}, r->out);
	media_sent(r->m, r->in, r->out, r->outs);
	r->n = 0;
}

void rig_run(struct rig *r)
{
	rig_complete(r, rig_prepare(r));
}

/* Checks that the sent packet is what B's terminal expects under its key and this index. */
void rig_got(const struct rig *r, uint32_t k, uint32_t ssrc, uint64_t index, uint64_t tx_index)
{
	uint8_t p[172], want[256];
	uint32_t len;

	assert_true(k < r->outs);
	rig_plain_rtp(p, ssrc, index);
	len = rig_protect(
		r, want, (struct rig_plain){p, 172, 12, B_RX, r->suite_b, tx_index, false});
	assert_int_equal(r->out[k].len, len);
	assert_memory_equal(r->a.out + r->out[k].out_off, want, len);
	assert_int_equal(r->out[k].local.port, PORT_B);
	assert_int_equal(r->out[k].dst.port, 5000);
}

uint32_t rig_open(
	const struct rig *r, uint32_t k, uint8_t *plain, uint32_t slot, uint64_t index, bool rtcp)
{
	static uint8_t out[ARENA_SLOT_LEN];
	const uint8_t *p = r->a.out + r->out[k].out_off;
	struct media_crypto c = rig_crypto(r, slot, r->suite_b);
	struct media_tail t = media_tail(&c, rtcp);
	struct rtp_hdr rtp;
	uint32_t hdr = rtcp ? 8 : (uint32_t)rtp_parse(&rtp, p, r->out[k].len);
	struct xc_job j = {.rx_index = index,
		.rx_key = 2 + rtcp,
		.tx_key = rtcp,
		.hdr_len = hdr,
		.body_len = r->out[k].len - t.len - hdr,
		.ssrc = be32(p + (rtcp ? 4 : 8)),
		.flags = rtcp ? XC_JOB_RTCP : 0};

	j.rx_tag_off = hdr + j.body_len + t.tag;
	assert_memory_equal(p + hdr + j.body_len + t.mki, c.key[0].mki, c.mki_len);
	assert_int_equal(
		srtp_ref_job(&j, terminal_keys(r, slot, r->suite_b, index, rtcp), p, out), XC_OK);
	memcpy(plain, out, hdr + j.body_len);
	return hdr + j.body_len;
}

uint64_t rig_dropped(const struct rig *r, uint32_t s, enum packet_verdict why)
{
	return atomic_load(&media_stream_counters(r->m, s)->drops[why]);
}

/* Copies the state of contexts, windows, streams and keys, without prepare's scratch. */
void *rig_snapshot(const struct rig *r, size_t *len)
{
	const struct media *m = r->m;
	size_t c = m->cfg.max_ctx * sizeof(*m->ctx), s = m->cfg.max_stream * sizeof(*m->stream);
	/* The default window is part of the context. */
	size_t w = m->window_words <= SRTP_REPLAY_NEAR
		? 0
		: (size_t)m->cfg.max_ctx * SSRC_TABLES * MEDIA_SSRCS * m->window_words * 8;
	size_t k = KEYS / 2 * sizeof(*m->key);
	uint8_t *copy = aligned_alloc(64, (c + s + w + k + 63) / 64 * 64);

	assert_non_null(copy);
	memcpy(copy, m->ctx, c);
	memcpy(copy + c, m->stream, s);
	memcpy(copy + c + s, m->windows, w);
	memcpy(copy + c + s + w, m->key, k);
	for (uint32_t i = 0; i < m->cfg.max_ctx; i++) {
		((struct media_ctx *)copy)[i].scratch_burst = 0;
		((struct media_ctx *)copy)[i].scratch_rtcp = 0;
		memset(&((struct media_ctx *)copy)[i].scratch_name, 0, 8);
	}
	*len = c + s + w + k;
	return copy;
}
