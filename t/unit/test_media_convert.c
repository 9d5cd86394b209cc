/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.711 of one law that leaves under the other, packet by packet: by payload type, on the fast path
 * and on the slow one, for SRTP and RTP on either side. */
#include "media/fast_path.h"
#include "media_rig.h"
#include "srtp/g711.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { BODY = 160, LEN = 12 + BODY, PCMU = 0, PCMA = 8, EVENT = 101, CN = 13 };

/* A's terminal has PCMU, B's has PCMA. */
static struct rig *rig_of(enum srtp_suite_id a, enum srtp_suite_id b, uint32_t convert)
{
	struct rig *r = rig_new(a, b, 0);
	struct media_cmd cmd = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");

	cmd.stream.convert = convert;
	assert_int_equal(media_command(r->m, &cmd), 0);
	return r;
}

/* A's terminal sends such a packet. padding: bytes of it, in the body. */
static void say(struct rig *r, uint8_t type, uint64_t index, uint8_t padding)
{
	uint8_t plain[LEN], *p = rig_slot(r, A, PORT_A);

	rig_plain_rtp(plain, 7, index);
	plain[1] = type;
	for (uint32_t i = 0; i < BODY; i++)
		plain[12 + i] = (uint8_t)(i * 3 + index);
	if (padding) {
		plain[0] |= RTP_P_BIT;
		plain[LEN - 1] = padding;
	}
	r->in[r->n - 1].len = rig_protect(r, p,
		(struct rig_plain){
			plain, LEN, 12, r->suite_a ? A_TX : 0, r->suite_a, index, false});
}

/* B's terminal got this payload type, and the body converted except for its last bytes. */
static void got(
	struct rig *r, uint32_t k, uint8_t type, uint64_t index, uint32_t law, uint32_t rest)
{
	uint8_t plain[ARENA_MAX_PACKET];
	uint32_t len = r->out[k].len;

	if (r->suite_b == SUITE_PLAIN)
		memcpy(plain, r->a.out + r->out[k].out_off, len);
	else
		len = rig_open(r, k, plain, B_RX, index, false);
	assert_int_equal(len, LEN);
	assert_int_equal(plain[1], type);
	assert_int_equal(be16(plain + 2), (uint16_t)index);
	assert_int_equal(be32(plain + 8), 7);
	for (uint32_t i = 0; i + rest < BODY; i++) {
		uint8_t was = (uint8_t)(i * 3 + index);

		g711_convert(&was, 1, law);
		assert_int_equal(plain[12 + i], was);
	}
	if (rest)
		assert_int_equal(plain[LEN - 1], rest);
}

static void packets_are_converted_by_payload_type(void **state)
{
	static const struct {
		uint8_t in, out;
		uint32_t law;
	} row[] = {{PCMU, PCMA, XC_LAW_U_TO_A}, {PCMA, PCMA, XC_LAW_KEEP},
		{EVENT, EVENT, XC_LAW_KEEP}, {CN, CN, XC_LAW_KEEP}, {PCMU, PCMA, XC_LAW_U_TO_A}};
	static const enum srtp_suite_id suite[] = {SUITE_PLAIN, SUITE_AES_CM_128_80,
		SUITE_AES_256_CM_80, SUITE_AEAD_AES_128_GCM, SUITE_F8_128_80};

	(void)state;
	for (size_t a = 0; a < ARRAY_LEN(suite); a++)
		for (size_t b = 0; b < ARRAY_LEN(suite); b++) {
			struct rig *r = rig_of(
				suite[a], suite[b], MEDIA_CONVERT(PCMU, PCMA, XC_LAW_U_TO_A));

			for (uint64_t i = 1; i <= 4 * ARRAY_LEN(row); i++) {
				size_t k = i % ARRAY_LEN(row);

				say(r, row[k].in, i, 0);
				rig_run(r);
				assert_int_equal(r->in[0].verdict, PACKET_SENT);
				got(r, 0, row[k].out, i, row[k].law, 0);
			}
			rig_free(r);
		}
}

/* The engine cannot know the padding of an encrypted body. */
static void padding_stays(void **state)
{
	struct rig *r = rig_of(
		SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, MEDIA_CONVERT(PCMU, PCMA, XC_LAW_U_TO_A));

	(void)state;
	for (uint64_t i = 1; i < 8; i++) {
		say(r, PCMU, i, (uint8_t)(i * 4));
		rig_run(r);
		assert_int_equal(r->in[0].verdict, PACKET_SENT);
		got(r, 0, PCMA, i, XC_LAW_U_TO_A, (uint32_t)i * 4);
	}
	say(r, PCMU, 9, 255); /* longer than the packet */
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_SENT);
	rig_free(r);
}

static void two_payload_types_can_change(void **state)
{
	struct rig *r = rig_of(SUITE_PLAIN, SUITE_AES_CM_128_80,
		MEDIA_CONVERT(96, PCMA, XC_LAW_U_TO_A) |
			MEDIA_CONVERT(PCMA, 97, XC_LAW_A_TO_U) << 16);

	(void)state;
	say(r, 96, 1, 0);
	say(r, PCMA, 2, 0);
	say(r, PCMU, 3, 0);
	rig_run(r);
	got(r, 0, PCMA, 1, XC_LAW_U_TO_A, 0);
	got(r, 1, 97, 2, XC_LAW_A_TO_U, 0);
	got(r, 2, PCMU, 3, XC_LAW_KEEP, 0);
	rig_free(r);
}

/* The short way is taken, and gives what the long one gives. */
static void the_short_way_is_taken(void **state)
{
	struct rig *r = rig_of(
		SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, MEDIA_CONVERT(PCMU, PCMA, XC_LAW_U_TO_A));
	uint32_t taken = 0;

	(void)state;
	for (uint64_t i = 1; i < 20; i++) {
		uint32_t jobs;

		say(r, PCMU, i, 0);
		jobs = rig_prepare(r);
		taken += r->m->note[0].fast;
		rig_complete(r, jobs);
		got(r, 0, PCMA, i, XC_LAW_U_TO_A, 0);
	}
	assert_false(r->m->stream[A].fast);
	assert_true(r->m->stream[A].convert);
	assert_in_range(taken, 15, 19);
	rig_free(r);
}

/* A listener was offered the source's codec. */
static void listeners_get_what_the_source_sends(void **state)
{
	struct rig *r = rig_of(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct media_cmd a = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
	struct media_cmd l = rig_stream_cmd(3, 30004, 2, MEDIA_NONE, MEDIA_NONE, "192.0.2.3:4000");
	const uint8_t *p;

	(void)state;
	rig_ctx_plain(r, 2);
	l.stream.listener = true;
	assert_int_equal(media_command(r->m, &l), 0);
	a.stream.copy[0] = 3 + 1;
	a.stream.convert = MEDIA_CONVERT(PCMU, PCMA, XC_LAW_U_TO_A);
	assert_int_equal(media_command(r->m, &a), 0);
	say(r, PCMU, 1, 0);
	rig_run(r);
	assert_int_equal(r->outs, 2);
	got(r, 0, PCMA, 1, XC_LAW_U_TO_A, 0);
	p = r->a.out + r->out[1].out_off;
	assert_int_equal(p[1], PCMU);
	for (uint32_t i = 0; i < BODY; i++)
		assert_int_equal(p[12 + i], (uint8_t)(i * 3 + 1));
	rig_free(r);
}

/* Silence is made in the source's law, and converted like its packets. */
static void silence_is_converted(void **state)
{
	struct rig *r = rig_of(SUITE_AES_CM_128_80, SUITE_PLAIN, 0);
	struct media_cmd a = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
	const uint8_t *p;

	(void)state;
	a.stream.gate = MEDIA_GATE_QUIET;
	a.stream.quiet = MEDIA_QUIET_PCMU;
	a.stream.convert = MEDIA_CONVERT(PCMU, PCMA, XC_LAW_U_TO_A);
	assert_int_equal(media_command(r->m, &a), 0);
	say(r, PCMU, 1, 0);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	p = r->a.out + r->out[0].out_off;
	assert_int_equal(p[1], PCMA);
	for (uint32_t i = 0; i < BODY; i++)
		assert_int_equal(p[12 + i], 0xd5);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_are_converted_by_payload_type),
		cmocka_unit_test(padding_stays),
		cmocka_unit_test(two_payload_types_can_change),
		cmocka_unit_test(the_short_way_is_taken),
		cmocka_unit_test(listeners_get_what_the_source_sends),
		cmocka_unit_test(silence_is_converted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
