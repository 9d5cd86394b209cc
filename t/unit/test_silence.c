/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Silenced media: a packet leaves with its own header and silence in its codec, protected like any
 * other. A packet whose codec has no silence is dropped. Received packets are still authenticated
 * and followed. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { PCMU = 0, PCMA = 8, G722 = 9, OTHER = 18, EVENT = 101, LEN = 172, L = 4, PORT_L = 30004 };

static void source(struct rig *r, uint8_t gate, uint32_t copy)
{
	struct media_cmd cmd = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");

	cmd.stream.rtp = cmd.stream.rtcp = true;
	cmd.stream.gate = gate;
	cmd.stream.quiet = MEDIA_QUIET_ALL;
	cmd.stream.events[EVENT / 64] = 1ull << EVENT % 64;
	cmd.stream.copy[0] = cmd.stream.copy[1] = copy;
	assert_int_equal(media_command(r->m, &cmd), 0);
}

static void listener(struct rig *r, uint8_t gate)
{
	struct media_cmd cmd =
		rig_stream_cmd(L, PORT_L, 2, MEDIA_NONE, MEDIA_NONE, "192.0.2.9:9000");

	cmd.stream.rtp = cmd.stream.rtcp = cmd.stream.listener = true;
	cmd.stream.gate = gate;
	assert_int_equal(media_command(r->m, &cmd), 0);
}

/* A packet from A's terminal. hdr: length of its header as the first byte describes it. */
static uint8_t *talk_long(struct rig *r, uint8_t first, uint8_t type, uint32_t hdr, uint64_t index)
{
	uint8_t plain[LEN + 64], *at = rig_slot(r, A, PORT_A);

	memset(plain, 0x5a, sizeof(plain));
	rig_plain_rtp(plain, 7, index);
	plain[0] = first;
	plain[1] = type;
	if (first & 0x10) /* a header extension of one word */
		put_be16(plain + 14, 1);
	r->in[r->n - 1].len = rig_protect(r, at,
		(struct rig_plain){plain, LEN + hdr - 12, hdr, r->suite_a ? A_TX : 0, r->suite_a,
			index, false});
	return at;
}

static void talk(struct rig *r, uint8_t type, uint64_t index)
{
	talk_long(r, 0x80, type, 12, index);
}

static const struct packet_out *left_from(const struct rig *r, uint16_t port)
{
	for (uint32_t i = 0; i < r->outs; i++)
		if (r->out[i].local.port == port)
			return &r->out[i];
	return NULL;
}

/* Decrypts the sent packet as B's terminal does. */
static void hears(const struct rig *r, uint8_t type, int silence, uint64_t index)
{
	const struct packet_out *out = left_from(r, PORT_B);
	uint8_t plain[2048];

	assert_non_null(out);
	if (r->suite_b)
		assert_int_equal(
			rig_open(r, (uint32_t)(out - r->out), plain, B_RX, index, false), LEN);
	else
		memcpy(plain, r->a.out + out->out_off, LEN);
	assert_int_equal(plain[1], type);
	assert_int_equal(be16(plain + 2), (uint16_t)index);
	assert_int_equal(be32(plain + 8), 7);
	for (int i = 12; i < LEN; i++)
		assert_int_equal(plain[i], silence < 0 ? (uint8_t)index : silence);
}

static const enum srtp_suite_id suites[][2] = {
	{SUITE_AES_CM_128_80, SUITE_AES_CM_128_32},
	{SUITE_AEAD_AES_128_GCM, SUITE_AES_CM_128_80},
	{SUITE_PLAIN, SUITE_AEAD_AES_256_GCM},
	{SUITE_AES_CM_128_80, SUITE_PLAIN},
	{SUITE_PLAIN, SUITE_PLAIN},
};

static void g711_and_g722_become_silence_and_nothing_is_lost(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(suites); i++) {
		struct rig *r = rig_new(suites[i][0], suites[i][1], 0);
		uint64_t index = 65530;

		talk(r, PCMA, index);
		rig_run(r);
		hears(r, PCMA, -1, index++);
		source(r, MEDIA_GATE_QUIET, 0);
		/* The sequence numbers wrap here. */
		for (int k = 0; k < 21; k++, index++) {
			static const uint8_t type[] = {PCMA, PCMU, G722};
			static const int silence[] = {0xd5, 0xff, 0xfd};

			talk(r, type[k % 3], index);
			rig_run(r);
			assert_int_equal(r->outs, 1);
			hears(r, type[k % 3], silence[k % 3], index);
		}
		assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->packets), 22);
		source(r, 0, 0);
		talk(r, PCMA, index);
		rig_run(r);
		hears(r, PCMA, -1, index);
		rig_free(r);
	}
}

static void a_burst_is_silenced_in_its_order(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);

	(void)state;
	source(r, MEDIA_GATE_QUIET, 0);
	assert_int_equal(media_burst_max(r->m), SLOTS / 2);
	for (uint64_t index = 1; index <= SLOTS / 2; index++)
		talk(r, PCMU, index);
	rig_run(r);
	assert_int_equal(r->outs, SLOTS / 2);
	for (uint32_t k = 0; k < r->outs; k++) {
		uint8_t plain[2048];

		assert_int_equal(rig_open(r, k, plain, B_RX, k + 1, false), LEN);
		assert_int_equal(be16(plain + 2), k + 1);
		assert_int_equal(plain[12], 0xff);
	}
	source(r, 0, 0);
	assert_int_equal(media_burst_max(r->m), SLOTS);
	rig_free(r);
}

static void what_has_no_silence_does_not_leave_and_events_do(void **state)
{
	static const struct {
		uint8_t gate, type;
		uint32_t outs;
	} T[] = {
		{MEDIA_GATE_QUIET, OTHER, 0},
		{MEDIA_GATE_QUIET, EVENT, 1},
		{MEDIA_GATE_QUIET | MEDIA_GATE_DTMF, EVENT, 0},
		{MEDIA_GATE_QUIET | MEDIA_GATE_MEDIA, PCMA, 0},
		{MEDIA_GATE_TO(MEDIA_GATE_QUIET), OTHER, 0},
		{MEDIA_GATE_TO(MEDIA_GATE_QUIET), PCMA, 1},
		{MEDIA_GATE_TO(MEDIA_GATE_QUIET) | MEDIA_GATE_MEDIA, PCMA, 0},
		{MEDIA_GATE_MEDIA, EVENT, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);

		source(r, T[i].gate, 0);
		talk(r, T[i].type, 1);
		rig_run(r);
		if (r->outs != T[i].outs)
			fail_msg("row %zu: %u left", i, r->outs);
		if (!r->outs)
			assert_int_equal(rig_dropped(r, A, PACKET_DROP_BLOCKED), 1);
		assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->packets), 1);
		rig_free(r);
	}
}

static void forged_and_repeated_packets_make_no_silence(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);

	(void)state;
	source(r, MEDIA_GATE_QUIET, 0);
	talk_long(r, 0x80, PCMU, 12, 1)[20] ^= 1;
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_BAD_TAG), 1);
	talk(r, PCMU, 2);
	talk(r, PCMU, 2);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_REPLAY), 1);
	rig_free(r);
}

/* Extension and contributing sources stay; padding becomes silence. */
static void headers_stay_and_padding_goes(void **state)
{
	static const struct {
		uint8_t first;
		uint32_t hdr;
	} T[] = {{0x80, 12}, {0xa0, 12}, {0x90, 20}, {0x82, 20}, {0xb1, 24}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_PLAIN, 0);
		const uint8_t *p;

		source(r, MEDIA_GATE_QUIET, 0);
		if (T[i].first == 0xb1) { /* one source, then the extension */
			uint8_t plain[LEN + 64], *at = rig_slot(r, A, PORT_A);

			memset(plain, 0x5a, sizeof(plain));
			rig_plain_rtp(plain, 7, 1);
			plain[0] = T[i].first;
			plain[1] = PCMU;
			put_be16(plain + 18, 1);
			r->in[r->n - 1].len = rig_protect(r, at,
				(struct rig_plain){
					plain, LEN + 12, 24, A_TX, r->suite_a, 1, false});
		} else {
			talk_long(r, T[i].first, PCMU, T[i].hdr, 1);
		}
		rig_run(r);
		assert_int_equal(r->outs, 1);
		assert_int_equal(r->out[0].len, LEN + T[i].hdr - 12);
		p = r->a.out + r->out[0].out_off;
		assert_int_equal(p[0], T[i].first & 0xdf);
		for (uint32_t k = T[i].hdr; k < r->out[0].len; k++)
			assert_int_equal(p[k], 0xff);
		rig_free(r);
	}
}

/* A listener gets what all get, unless a gate applies to one receiver. */
static void gates_of_flows_are_apart(void **state)
{
	static const struct {
		uint8_t source, listener;
		int b, l; /* 0: nothing, 1: speech, 2: silence */
	} T[] = {
		{0, 0, 1, 1},
		{MEDIA_GATE_QUIET, 0, 2, 2},
		{MEDIA_GATE_MEDIA, 0, 0, 0},
		{MEDIA_GATE_TO(MEDIA_GATE_QUIET), 0, 2, 1},
		{MEDIA_GATE_TO(MEDIA_GATE_MEDIA), 0, 0, 1},
		{0, MEDIA_GATE_TO(MEDIA_GATE_QUIET), 1, 2},
		{0, MEDIA_GATE_TO(MEDIA_GATE_MEDIA), 1, 0},
		{MEDIA_GATE_TO(MEDIA_GATE_QUIET), MEDIA_GATE_TO(MEDIA_GATE_QUIET), 2, 2},
		{MEDIA_GATE_TO(MEDIA_GATE_MEDIA), MEDIA_GATE_TO(MEDIA_GATE_MEDIA), 0, 0},
		{MEDIA_GATE_QUIET, MEDIA_GATE_TO(MEDIA_GATE_MEDIA), 2, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_PLAIN, 0);
		const int want[2] = {T[i].b, T[i].l};
		const uint16_t port[2] = {PORT_B, PORT_L};

		rig_ctx(r, 2, (struct rig_keys){0, 0, SUITE_PLAIN, true, true});
		listener(r, T[i].listener);
		source(r, T[i].source, L + 1);
		talk(r, PCMU, 9);
		rig_run(r);
		for (int k = 0; k < 2; k++) {
			const struct packet_out *out = left_from(r, port[k]);
			int is = !out ? 0 : r->a.out[out->out_off + 50] == 9 ? 1 : 2;

			if (is != want[k])
				fail_msg("row %zu: port %u got %d", i, port[k], is);
		}
		rig_free(r);
	}
}

static void a_packet_too_long_for_its_slot_is_counted(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, SUITE_AES_CM_128_32, 0);
	uint8_t *at;

	(void)state;
	source(r, MEDIA_GATE_QUIET, 0);
	at = rig_slot(r, A, PORT_A);
	memset(at, 0, 1500);
	rig_plain_rtp(at, 7, 1);
	r->in[r->n - 1].len = 1500;
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_int_equal(rig_dropped(r, B, PACKET_DROP_COPY_ROOM), 1);
	rig_free(r);
}

/* The serial engine, whose memory is checked, gives the same result. */
static void the_serial_engine_agrees(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 0);

	(void)state;
	rig_engine(r);
	source(r, MEDIA_GATE_QUIET, 0);
	for (uint64_t index = 1; index < 5; index++) {
		talk(r, PCMU, index);
		rig_run(r);
		hears(r, PCMU, 0xff, index);
	}
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(g711_and_g722_become_silence_and_nothing_is_lost),
		cmocka_unit_test(a_burst_is_silenced_in_its_order),
		cmocka_unit_test(what_has_no_silence_does_not_leave_and_events_do),
		cmocka_unit_test(forged_and_repeated_packets_make_no_silence),
		cmocka_unit_test(headers_stay_and_padding_goes),
		cmocka_unit_test(gates_of_flows_are_apart),
		cmocka_unit_test(a_packet_too_long_for_its_slot_is_counted),
		cmocka_unit_test(the_serial_engine_agrees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
