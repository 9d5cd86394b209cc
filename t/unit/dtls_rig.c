/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See dtls_rig.h. */
#include "dtls_rig.h"

#include <assert.h>
#include <stdlib.h>

#define S_NS 1000000000ull

static uint64_t wall_ns, back_ns;

uint64_t dtls_rig_wall_ns(void)
{
	return 1700000000u * S_NS + wall_ns - back_ns;
}

void dtls_rig_set_back(uint64_t ns)
{
	back_ns = ns;
}

void dtls_rig_init(struct dtls_rig *r)
{
	memset(r, 0, sizeof(*r));
	r->now_ns = wall_ns = S_NS;
	back_ns = 0;
	for (int i = 0; i < 2; i++) {
		int err = dtls_cert_create(&r->cert[i], 1700000000, 86400);

		assert(err == 0);
		(void)err;
		r->config[i] = (struct dtls_config){.cert = r->cert[i],
			.role = i ? DTLS_ROLE_SERVER : DTLS_ROLE_CLIENT,
			.profile = {SUITE_AEAD_AES_256_GCM, SUITE_AEAD_AES_128_GCM,
				SUITE_AES_CM_128_80, SUITE_AES_CM_128_32},
			.profiles = 4,
			.counts = &r->counts[i]};
	}
}

void dtls_rig_expect(struct dtls_rig *r, int who, enum dtls_hash h, bool wrong)
{
	struct dtls_fingerprints f = {.count = 1};
	int err = dtls_cert_fingerprint(&f.f[0], r->cert[!who], h);

	assert(err == 0);
	(void)err;
	f.f[0].value[3] ^= wrong;
	(void)dtls_expect(r->a[who], &f, r->now_ns);
}

void dtls_rig_create(struct dtls_rig *r, bool expect)
{
	for (int i = 0; i < 2; i++) {
		int err = dtls_create(&r->a[i], &r->config[i]);

		assert(err == 0);
		(void)err;
		if (expect)
			dtls_rig_expect(r, i, DTLS_SHA256, false);
	}
}

void dtls_rig_fini(struct dtls_rig *r)
{
	for (int i = 0; i < 2; i++) {
		dtls_destroy(r->a[i]);
		dtls_cert_put(r->cert[i]);
	}
}

static void collect(struct dtls_rig *r, int who)
{
	uint8_t buf[DTLS_PACKET_MAX];
	int n;

	while ((n = dtls_next(r->a[who], buf, sizeof(buf))) > 0) {
		struct dtls_rig_packet *p = &r->sent[r->n];

		assert(r->n < RIG_PACKETS);
		p->to_server = who == 0;
		p->len = (size_t)n;
		memcpy(p->p, buf, p->len);
		r->n++;
	}
	assert(n == 0);
}

bool dtls_rig_deliver(struct dtls_rig *r)
{
	size_t from = r->at, to;

	collect(r, 0);
	collect(r, 1);
	r->at = to = r->n;
	for (size_t k = from; k < to; k++) {
		size_t i = r->backwards ? to - 1 - (k - from) : k;
		unsigned times = r->fate ? r->fate(r, i) : 1;
		/* a copy of exactly this length, so that sanitizers see reads beyond it */
		uint8_t *copy = malloc(r->sent[i].len);

		assert(copy);
		memcpy(copy, r->sent[i].p, r->sent[i].len);
		while (times--) {
			(void)dtls_take(
				r->a[r->sent[i].to_server], copy, r->sent[i].len, r->now_ns);
			collect(r, 0);
			collect(r, 1);
		}
		free(copy);
	}
	return to > from;
}

void dtls_rig_run(struct dtls_rig *r, uint64_t until_ns)
{
	for (;;) {
		uint64_t d0, d1;

		while (dtls_rig_deliver(r))
			;
		d0 = dtls_deadline(r->a[0]);
		d1 = dtls_deadline(r->a[1]);
		d0 = d0 < d1 ? d0 : d1;
		if (d0 > until_ns)
			break;
		assert(d0 > r->now_ns);
		r->now_ns = wall_ns = d0;
		dtls_tick(r->a[0], r->now_ns);
		dtls_tick(r->a[1], r->now_ns);
	}
	r->now_ns = wall_ns = until_ns;
}

static bool busy(const struct dtls *a)
{
	return dtls_state(a) == DTLS_IDLE || dtls_state(a) == DTLS_HANDSHAKE;
}

void dtls_rig_handshake(struct dtls_rig *r)
{
	uint64_t end = r->now_ns + 60 * S_NS;

	(void)dtls_start(r->a[0], r->now_ns);
	while ((busy(r->a[0]) || busy(r->a[1])) && r->now_ns < end)
		dtls_rig_run(r, r->now_ns + S_NS / 100);
}

bool dtls_rig_keys_agree(const struct dtls_rig *r, struct srtp_master *client_tx)
{
	struct srtp_master rx[2], tx[2];

	if (dtls_keys(r->a[0], &rx[0], &tx[0]) || dtls_keys(r->a[1], &rx[1], &tx[1]))
		return false;
	if (client_tx)
		*client_tx = tx[0];
	return memcmp(&rx[0], &tx[1], sizeof(rx[0])) == 0 &&
		memcmp(&rx[1], &tx[0], sizeof(rx[1])) == 0 &&
		memcmp(&rx[0], &tx[0], sizeof(rx[0])) != 0;
}

unsigned dtls_rig_lossy(struct dtls_rig *r, size_t i)
{
	unsigned roll;

	(void)i;
	r->seed = r->seed * 1103515245u + 12345u;
	roll = r->seed >> 16 & 0x7fff;
	if (roll % 100 < r->percent)
		return 0;
	return roll / 100 % 100 < r->percent ? 2 : 1;
}
