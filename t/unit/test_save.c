/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that outlive the daemon: a saved call is restored unchanged. A damaged record, another
 * version or an occupied port changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>

#include "call/call.h"
#include "call/call_int.h"
#include "call/delete.h"
#include "call/dtmf_trigger.h"
#include "call/recording.h"
#include "call/unsaved.h"
#include "keying/zrtp.h"
#include "persist/save.h"
#include "persist/save_format.h"
#include "save_talk.h"

static void what_was_saved_comes_back_the_same(void **state)
{
	struct talk t;
	struct saved before, after;
	const char *why = NULL;
	uint16_t port;
	size_t len;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	make_call(&t);
	port = port_of(&t, 0);
	save(&t, &before);
	reborn(&t);
	calls_save_start(t.c);
	assert_int_equal(restore(&t, sbuf_view(&before.whole), STR_NONE, &why), 0);
	assert_non_null(mock_stream(t.m, port));
	/* The bytes are equal except for the revision, so all saved fields were restored. */
	calls_saver(t.c)->table->first->save.revision--;
	save(&t, &after);
	len = (size_t)((char *)memmem(before.whole.p, before.whole.len, "5:state", 7) -
		before.whole.p);
	assert_true(len < after.whole.len);
	assert_memory_equal(before.whole.p, after.whole.p, len);
	/* Negotiation continues: a re-INVITE keeps ports and our keys. */
	struct sdes key;
	struct ng_request r =
		talk_request("a", "b", talk_body(&t, "198.51.100.1", 4000, "RTP/SAVP", FULL));

	r.transport = STR("RTP/AVP");
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	talk_answer(&t, "a", "b",
		talk_body(&t, "198.51.100.2", 5000, "RTP/AVP", "m=video 5002 RTP/AVP 96\r\n"));
	assert_null(t.reply.error);
	assert_int_equal(port_of(&t, 0), port);
	assert_true(talk_line(&t, 0, 0, &key));
	assert_int_equal(t.m->rx_new + t.m->tx_new, 0);
	/* The first offer's flags still belong to the callee, so the caller's leg stays
	 * unchanged. */
	r = talk_request("b", "a",
		talk_body(&t, "198.51.100.2", 5000, "RTP/AVP", "m=video 5002 RTP/AVP 96\r\n"));
	r.transport = STR("RTP/AVP");
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media[0].proto, SDP_RTP_SAVP);
	sbuf_fini(&before.whole);
	sbuf_fini(&before.state);
	sbuf_fini(&after.whole);
	sbuf_fini(&after.state);
	talk_end(&t);
}

/* sdp-media-remove: the other side numbers its m-lines differently. The call restores that
 * numbering. */
static void what_a_party_was_not_told_of_stays_so(void **state)
{
	struct talk t;
	struct saved s;
	const char *why = NULL;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	struct ng_request r = talk_request("a", "",
		talk_body(&t, "198.51.100.1", 4000, "RTP/AVP", "m=video 4002 RTP/AVP 96\r\n"));

	r.media_remove[r.media_removes++] = STR("video");
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media_count, 1);
	talk_answer(&t, "a", "b", talk_body(&t, "198.51.100.2", 5000, "RTP/AVP", ""));
	save(&t, &s);
	reborn(&t);
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	talk_offer(&t, "b", "a", talk_body(&t, "198.51.100.2", 5000, "RTP/AVP", ""));
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media_count, 2);
	assert_int_not_equal(port_of(&t, 0), 0);
	assert_true(str_eq(t.sdp->media[1].kind, STR("video")));
	assert_int_equal(port_of(&t, 1), 0);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

/* OSRTP=offer-legacy: likewise. An answer in RTP still belongs to the earlier offer. */
static void what_a_party_knows_as_two_stays_two(void **state)
{
	struct talk t;
	struct saved s;
	const char *why = NULL;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	struct ng_request r =
		talk_request("a", "", talk_body(&t, "198.51.100.1", 4000, "RTP/AVP", ""));

	r.osrtp = NG_OSRTP_OFFER_LEGACY;
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media_count, 2);
	save(&t, &s);
	reborn(&t);
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	talk_answer(&t, "a", "b",
		talk_body(&t, "198.51.100.2", 0, "RTP/SAVP", "m=audio 5000 RTP/AVP 0\r\n"));
	assert_null(t.reply.error);
	assert_int_equal(t.sdp->media_count, 1);
	assert_int_not_equal(port_of(&t, 0), 0);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}
static struct call *first_call(struct talk *t)
{
	return calls_saver(t->c)->table->first;
}

/* State that later offers, early media and SRTCP need. Each value differs from its default. */
static void flags_in_force_come_back(void **state)
{
	struct talk t;
	struct saved s;
	const char *why = NULL;
	struct side_wanted *w;
	struct leg *l;

	(void)state;
	talk_start(&t);
	t.policy.early_media = true;
	calls_destroy(t.c);
	assert_int_equal(calls_create(&t.c, &t.policy, &t.m->relay), 0);
	calls_save_start(t.c);
	struct ng_request r =
		talk_request("a", "", talk_body(&t, "198.51.100.1", 4000, "RTP/AVP", ""));

	r.transport = STR("RTP/AVPF");
	r.osrtp = NG_OSRTP_OFFER;
	r.rtcp_mux = NG_RTCP_MUX_OFFER | NG_RTCP_MUX_REQUIRE;
	r.sdes.only = 1u << SUITE_AES_CM_128_32;
	r.flags |= 1ull << NG_FLAG_SRTCP_TAG_32;
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	assert_true(first_call(&t)->side[0]->leg[0]->early);
	first_call(&t)->side[0]->leg[0]->rtp_proto = SDP_RTP_SAVPF;
	save(&t, &s);
	reborn(&t);
	calls_save_start(t.c);
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	assert_true(first_call(&t)->short_tags);
	l = first_call(&t)->side[0]->leg[0];
	assert_true(l->early);
	assert_int_equal(l->rtp_proto, SDP_RTP_SAVPF);
	w = &first_call(&t)->side[1]->wanted;
	assert_int_equal(w->proto, SDP_RTP_AVPF);
	assert_int_equal(w->osrtp, NG_OSRTP_OFFER);
	assert_int_equal(w->mux, NG_RTCP_MUX_OFFER | NG_RTCP_MUX_REQUIRE);
	assert_int_equal(w->limits.only, 1u << SUITE_AES_CM_128_32);
	/* Control: the other side has none of these flags. */
	w = &first_call(&t)->side[0]->wanted;
	assert_int_equal(w->proto | w->osrtp | w->mux | w->limits.only, 0);
	assert_false(first_call(&t)->side[1]->leg[0]->early);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

/* --- DTMF --- */

static bool is_covered(struct talk *t)
{
	return first_call(t)->side[0]->gate & MEDIA_GATE_DTMF;
}

static void presses(struct talk *t, uint8_t digit)
{
	dtmf_digit(t->c, first_call(t), 0, digit, t->now);
}

/* A block that digits began ends after a restart as it would have before: by its end, its number of
 * digits, or its time. Its digits are not in the record. */
static void a_block_that_digits_began_ends(void **state)
{
	enum { STAR = 10, HASH, SEC_MS = 1000 };
	static const uint64_t second = 1000000000ull;

	(void)state;
	for (int how = 0; how < 4; how++) {
		struct ng_request r;
		const char *why = NULL;
		struct saved s;
		struct talk t;

		talk_start(&t);
		calls_save_start(t.c);
		make_call(&t);
		r = talk_request("a", "", "");
		r.dtmf.trigger = STR("*");
		r.dtmf.end = how == 0 ? STR("#") : STR("##");
		r.dtmf.end_digits = how == 1 ? 4 : -1;
		r.dtmf.end_ms = how == 2 ? 10 * SEC_MS : -1;
		r.dtmf.security = NG_DTMF_DROP;
		talk_pool(&t);
		calls_gate(
			t.c, t.p, &r, (struct calls_gate){MEDIA_GATE_DTMF, true}, t.now, &t.reply);
		assert_null(t.reply.error);
		presses(&t, STAR);
		assert_true(is_covered(&t));
		sbuf_init(&s.whole, 0);
		while (next(&t, &s.whole, &s.item))
			;
		presses(&t, 7);
		presses(&t, 7);
		if (how != 1) /* only the number of digits is worth a record of its own */
			calls_save_all(t.c);
		save(&t, &s);
		t.now += 4 * second;
		reborn(&t);
		calls_save_start(t.c);
		assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
		assert_true(is_covered(&t));
		assert_int_equal(first_call(&t)->side[0]->dtmf.last[SIDE_TRIGGER_MAX - 1], 0);
		if (how == 0) {
			presses(&t, HASH);
		} else if (how == 1) {
			presses(&t, 1);
			assert_true(is_covered(&t));
			presses(&t, 1);
		} else if (how == 2) {
			assert_false(dtmf_tick(t.c, first_call(&t), t.now + 5 * second));
			assert_true(is_covered(&t));
			assert_true(dtmf_tick(t.c, first_call(&t), t.now + 6 * second + 1));
		} else {
			presses(&t, HASH);
			assert_true(is_covered(&t));
			presses(&t, HASH);
		}
		assert_false(is_covered(&t));
		sbuf_fini(&s.whole);
		sbuf_fini(&s.state);
		talk_end(&t);
	}
}

/* --- Recordings --- */

struct fake_recorder {
	struct recorder rec;
	uint32_t started, stopped, discarded;
	char path[64], about[512], file[64], metadata[64], note[64];
	uint32_t parts, notes;
	int fail;
};

static int fake_start(
	void *arg, const struct record_start *s, uint32_t *tap, char path[RECORD_PATH_MAX])
{
	struct fake_recorder *f = arg;

	if (f->fail)
		return f->fail;
	f->parts = s->parts;
	snprintf(f->file, sizeof(f->file), STR_FMT, STR_ARG(s->file));
	snprintf(f->about, sizeof(f->about), STR_FMT, STR_ARG(s->about));
	snprintf(f->metadata, sizeof(f->metadata), STR_FMT, STR_ARG(s->metadata));
	if (s->parts)
		snprintf(path, RECORD_PATH_MAX, "/dir/tape-part%u", s->parts + 1);
	else
		snprintf(path, RECORD_PATH_MAX, "/dir/tape");
	*tap = 70 + ++f->started;
	return 0;
}

static void fake_note(void *arg, uint32_t tap, struct str line)
{
	struct fake_recorder *f = arg;

	assert_int_equal(tap, 70 + f->started);
	snprintf(f->note, sizeof(f->note), STR_FMT, STR_ARG(line));
	f->notes++;
}

static void fake_stop(void *arg, uint32_t tap, bool discard)
{
	struct fake_recorder *f = arg;

	assert_int_equal(tap, 70 + f->started);
	f->stopped++;
	f->discarded += discard;
}

static const struct recorder_ops fake_ops = {
	.start = fake_start, .note = fake_note, .stop = fake_stop};

/* One side by its tag, or all. */
static void record_with(
	struct talk *t, enum call_record what, const char *side, const char *metadata)
{
	struct ng_request r = talk_request(side, "", "");
	struct call_reply said;
	struct pool *p;

	r.metadata = str_from(metadata);
	if (side[0])
		r.flags |= 1ull << NG_FLAG_DIRECTIONAL;
	assert_int_equal(pool_create(&p, 1u << 20), 0);
	calls_record(t->c, p, &r, (struct calls_record){what, ngval_dict(p)}, t->now, &said);
	assert_null(said.error);
	pool_destroy(p);
}

static void record(struct talk *t, enum call_record what, const char *side)
{
	record_with(t, what, side, "");
}

static uint32_t tap_of(const struct talk *t, const struct side *s)
{
	return t->m->stream_cfg[s->leg[0]->port.rtp_stream].tap;
}

/* Also over a restart. A change while the call is recorded is reported once. */
static void a_recording_has_metadata(void **state)
{
	struct fake_recorder f = {.rec = {.ops = &fake_ops, .arg = &f}};
	struct talk t;
	struct saved s;
	const char *why = NULL;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	calls_recorder(t.c, &f.rec);
	make_call(&t);
	record_with(&t, CALL_RECORD_START, "", "who:alice");
	assert_string_equal(f.metadata, "who:alice");
	record_with(&t, CALL_RECORD_START, "", "who:alice");
	record(&t, CALL_RECORD_START, "");
	assert_int_equal(f.notes, 0);
	record_with(&t, CALL_RECORD_START, "", "who:bob");
	assert_int_equal(f.notes, 1);
	assert_string_equal(f.note, "metadata: who:bob");
	calls_save_all(t.c);
	save(&t, &s);
	reborn(&t);
	calls_save_start(t.c);
	calls_recorder(t.c, &f.rec);
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	assert_int_equal(f.started, 2);
	assert_string_equal(f.metadata, "who:bob");
	assert_int_equal(f.notes, 1);
	record_with(&t, CALL_RECORD_START, "", "who:carol");
	assert_int_equal(f.notes, 2);
	assert_string_equal(f.note, "metadata: who:carol");
	calls_leave(t.c);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

static void a_recording_goes_on_in_another_file(void **state)
{
	struct fake_recorder f = {.rec = {.ops = &fake_ops, .arg = &f}};
	struct talk t;
	struct saved s;
	const char *why = NULL;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	calls_recorder(t.c, &f.rec);
	make_call(&t);
	record(&t, CALL_RECORD_START, "a");
	for (uint32_t life = 1; life < 4; life++) {
		const struct call *c;

		save(&t, &s);
		reborn(&t);
		assert_int_equal(f.stopped, life); /* the mock stops as a daemon does */
		calls_save_start(t.c);
		calls_recorder(t.c, &f.rec);
		assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
		assert_null(why);
		assert_int_equal(f.parts, life);
		assert_string_equal(f.file, "tape");
		assert_non_null(strstr(f.about,
			life == 1 ? "continues: /dir/tape.pcap\n" : "continues: /dir/tape-part"));
		assert_non_null(strstr(f.about, "to our port"));
		c = calls_saver(t.c)->table->first;
		assert_int_equal(c->tap, 71 + life);
		assert_true(c->side[0]->tap && !c->side[1]->tap && !c->tap_all && !c->tap_paused);
		assert_int_equal(tap_of(&t, c->side[0]), 71 + life);
		assert_int_equal(tap_of(&t, c->side[1]), 0);
		sbuf_fini(&s.whole);
		sbuf_fini(&s.state);
	}
	/* A new recording starts with its first file. */
	record(&t, CALL_RECORD_STOP, "");
	assert_int_equal(f.stopped, 4);
	record(&t, CALL_RECORD_START, "");
	assert_int_equal(f.parts, 0);
	/* Without a folder for recordings the call is restored, and the operator is told. */
	calls_save_all(t.c);
	save(&t, &s);
	reborn(&t);
	f.stopped = 0;
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	assert_non_null(strstr(why, "without --recording-dir"));
	calls_leave(t.c);
	calls_recorder(t.c, &f.rec);
	f.fail = -ENOSPC;
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	assert_non_null(strstr(why, "cannot open a file"));
	assert_int_equal(f.stopped, 0);
	calls_leave(t.c);
	/* If the call cannot be restored, its file is closed. */
	f.fail = 0;
	for (uint32_t i = 1;; i++) {
		uint32_t started = f.started;

		t.m->calls = 0;
		t.m->fail_at = i;
		t.m->fail_with = -ENOSPC;
		if (!restore(&t, sbuf_view(&s.whole), STR_NONE, &why))
			break;
		f.stopped -= f.started - started; /* every opened file was closed */
		assert_int_equal(f.stopped, 0);
	}
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

static void each_call_waits_once_and_what_ended_goes_first(void **state)
{
	struct talk t;
	struct sbuf b = {0};
	struct save_item item;
	struct ngval *dict;
	struct ng_request r = talk_request("", "", "");
	struct calls_save_usage u;

	(void)state;
	talk_start(&t);
	make_call(&t);
	assert_false(next(&t, &b, &item)); /* no reader yet */
	calls_save_start(t.c);
	calls_save_all(t.c);
	calls_save_usage(t.c, &u);
	assert_int_equal(u.waiting, 1);
	r.delete_delay = 0;
	dict = ngval_dict(t.p);
	calls_delete(t.c, t.p, &r, t.now, &t.reply, dict);
	make_call(&t);
	assert_true(next(&t, &b, &item));
	assert_int_equal(item.what, SAVE_ENDED);
	assert_int_equal(item.call_id_len, 4);
	assert_true(next(&t, &b, &item));
	assert_int_equal(item.what, SAVE_CALL);
	assert_false(next(&t, &b, &item));
	/* The call is left to another node: nothing is removed. */
	calls_leave(t.c);
	assert_true(mock_relay_empty(t.m));
	assert_false(next(&t, &b, &item));
	sbuf_fini(&b);
	talk_end(&t);
}

static void what_cannot_come_back_changes_nothing(void **state)
{
	struct talk t;
	struct saved s;
	const char *why = NULL;
	char *other;
	uint16_t port;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	make_call(&t);
	port = port_of(&t, 0);
	save(&t, &s);
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), -EEXIST);
	reborn(&t);
	/* each step fails in turn */
	for (uint32_t i = 1;; i++) {
		int err;

		t.m->calls = 0;
		t.m->fail_at = i;
		t.m->fail_with = i % 2 ? -ENOSPC : -EADDRINUSE;
		err = restore(&t, sbuf_view(&s.whole), STR_NONE, &why);
		if (!err) {
			assert_true(i > 8);
			break;
		}
		assert_int_equal(err, t.m->fail_with);
		assert_string_equal(
			why, i % 2 ? "ran out of ports, contexts or keys" : "its port is taken");
		assert_true(mock_relay_empty(t.m));
	}
	t.m->fail_at = 0;
	reborn(&t);
	/* another version, another local address */
	other = malloc(s.whole.len);
	assert_non_null(other);
	memcpy(other, s.whole.p, s.whole.len);
	assert_memory_equal(other, "d1:vi3e", 7);
	other[5] = '0' + SAVE_VERSION + 1;
	assert_int_equal(
		restore(&t, (struct str){other, s.whole.len}, STR_NONE, &why), -EPROTONOSUPPORT);
	free(other);
	t.m->local[0].addr.addr[3] = 99;
	assert_int_equal(restore(&t, sbuf_view(&s.whole), STR_NONE, &why), -EADDRNOTAVAIL);
	assert_null(mock_stream(t.m, port));
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

static int restored_with(uint8_t preauth, uint8_t sas_kind)
{
	const char *why = NULL;
	struct saved s;
	struct talk t;
	struct leg *l;
	int err;

	talk_start(&t);
	calls_save_start(t.c);
	make_call(&t);
	l = first_call(&t)->side[0]->leg[0];
	l->rx.preauth = preauth;
	l->keying.zrtp.sas_kind = sas_kind;
	save(&t, &s);
	reborn(&t);
	err = restore(&t, sbuf_view(&s.whole), STR_NONE, &why);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
	return err;
}

/* Some combinations of chain's parameters do not exist, and some numbers name no kind of SAS. */
static void numbers_without_a_meaning_are_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PREAUTH_KINDS; i++)
		assert_int_equal(restored_with((uint8_t)(1 + i), 0),
			preauth_exists((enum preauth_scheme)i) ? 0 : -EBADMSG);
	assert_int_equal(restored_with(0, ZRTP_SAS_N - 1), 0);
	assert_int_equal(restored_with(0, ZRTP_SAS_N), -EBADMSG);
}

/* Records may contain anything. Here every byte is damaged in several ways, although encryption
 * would detect that. */
static void no_damage_does_harm(void **state)
{
	struct talk t;
	struct saved s;
	const char *why = NULL;
	uint32_t came = 0;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	make_call(&t);
	save(&t, &s);
	reborn(&t);
	for (size_t i = 0; i < s.whole.len; i++)
		for (int how = 0; how < 3; how++) {
			char was = s.whole.p[i];

			s.whole.p[i] = (char)(how == 0 ? was ^ 1 : how == 1 ? '9' : was ^ 0x55);
			if (!restore(&t, sbuf_view(&s.whole), STR_NONE, &why)) {
				came++;
				calls_leave(t.c);
			}
			assert_true(mock_relay_empty(t.m));
			s.whole.p[i] = was;
		}
	assert_true(came > 0); /* any byte of a key is valid */
	for (size_t len = 0; len < s.whole.len; len++)
		assert_int_not_equal(restore(&t, (struct str){s.whole.p, len}, STR_NONE, &why), 0);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_saved_comes_back_the_same),
		cmocka_unit_test(what_a_party_was_not_told_of_stays_so),
		cmocka_unit_test(what_a_party_knows_as_two_stays_two),
		cmocka_unit_test(flags_in_force_come_back),
		cmocka_unit_test(a_block_that_digits_began_ends),
		cmocka_unit_test(a_recording_has_metadata),
		cmocka_unit_test(a_recording_goes_on_in_another_file),
		cmocka_unit_test(each_call_waits_once_and_what_ended_goes_first),
		cmocka_unit_test(what_cannot_come_back_changes_nothing),
		cmocka_unit_test(numbers_without_a_meaning_are_refused),
		cmocka_unit_test(no_damage_does_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
