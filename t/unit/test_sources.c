/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The m-lines of a listener, and of connected parties, after a restart. t/compat tests them before
 * a restart. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/delete.h"
#include "call/unsaved.h"
#include "offer/connect.h"
#include "offer/exchange.h"
#include "save_talk.h"

/* "kind:label" of each m-line of the offer to the listener, "-" for a port of 0. */
static const char *subscribe(struct talk *t, const char *from, bool all)
{
	static char out[256];
	struct ng_request r = talk_request(from, "ear", "");
	size_t n = 0;

	r.flags = all ? 1ull << NG_FLAG_ALL : 0;
	talk_pool(t);
	calls_subscribe(t->c, t->p, &r, t->now, &t->reply, ngval_dict(t->p));
	mock_relay_check(t->m);
	assert_null(t->reply.error);
	t->sdp = pool_alloc(t->p, sizeof(*t->sdp));
	assert_int_equal(sdp_parse(t->sdp, t->p, t->reply.sdp, NULL), SDP_OK);
	for (uint32_t i = 0; i < t->sdp->media_count; i++) {
		const struct sdp_media *m = &t->sdp->media[i];
		const struct sdp_line *l = sdp_attr(m->lines, STR("label"));

		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s" STR_FMT ":" STR_FMT,
			n ? " " : "", STR_ARG(m->kind), STR_ARG(m->port && l ? l->arg : STR("-")));
	}
	return out;
}

static void restart(struct talk *t)
{
	const char *why = NULL;
	struct saved s;

	save(t, &s);
	reborn(t);
	assert_int_equal(restore(t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
}

static void m_lines_keep_their_places_over_a_restart(void **state)
{
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	make_call(&t);
	assert_string_equal(subscribe(&t, "", true), "audio:1 video:2 audio:101 video:102");
	assert_string_equal(subscribe(&t, "b", false), "audio:- video:- audio:101 video:102");
	restart(&t);
	assert_string_equal(subscribe(&t, "b", false), "audio:- video:- audio:101 video:102");
	assert_string_equal(subscribe(&t, "", true), "audio:1 video:2 audio:101 video:102");
	talk_end(&t);
}

static void one_who_unsubscribed_begins_again(void **state)
{
	struct ng_request r = talk_request("", "ear", "");
	struct talk t;

	(void)state;
	talk_start(&t);
	make_call(&t);
	assert_string_equal(subscribe(&t, "", true), "audio:1 video:2 audio:101 video:102");
	talk_pool(&t);
	calls_unsubscribe(t.c, t.p, &r, t.now, &t.reply);
	assert_null(t.reply.error);
	assert_string_equal(subscribe(&t, "b", false), "audio:101 video:102");
	talk_end(&t);
}

static const struct media_stream_cfg *rtp_from(const struct talk *t, uint8_t octet, uint16_t port)
{
	for (uint32_t k = 0; k < 2 * MOCK_MAX; k++) {
		const struct media_stream_cfg *s = &t->m->stream_cfg[k];

		if (t->m->stream_set[k] && s->rtp && s->remote.addr[3] == octet &&
			s->remote.port == port)
			return s;
	}
	fail_msg("no stream of 192.0.2.%u port %u", octet, port);
	return NULL;
}

/* Two media, at ports 4000 and 4002. */
static const char *body(struct talk *t, int who, bool video_first)
{
	static char out[512];
	char addr[16];

	snprintf(addr, sizeof(addr), "192.0.2.%d", who);
	if (!video_first)
		return talk_body(t, addr, 4000, "RTP/AVP", "m=video 4002 RTP/AVP 96\r\n");
	snprintf(out, sizeof(out),
		"v=0\r\no=- 1 1 IN IP4 %s\r\ns=-\r\nc=IN IP4 %s\r\nt=0 0\r\n"
		"m=video 4002 RTP/AVP 96\r\nm=audio 4000 RTP/AVP 0\r\n",
		addr, addr);
	return out;
}

static void joined_parties_stay_so_by_kind(void **state)
{
	struct ng_request r = talk_request("a", "d", "");
	struct talk t;

	(void)state;
	talk_start(&t);
	calls_save_start(t.c);
	talk_offer(&t, "a", "", body(&t, 1, false));
	talk_answer(&t, "a", "b", body(&t, 2, false));
	talk_offer(&t, "c", "", body(&t, 3, true));
	talk_answer(&t, "c", "d", body(&t, 4, true));
	assert_null(t.reply.error);
	talk_pool(&t);
	calls_connect(t.c, t.p, &r, t.now, &t.reply);
	assert_null(t.reply.error);
	for (int life = 0; life < 2; life++) {
		for (uint16_t port = 4000; port <= 4002; port += 2) {
			assert_ptr_equal(&t.m->stream_cfg[rtp_from(&t, 1, port)->rtp_to],
				rtp_from(&t, 4, port));
			assert_ptr_equal(&t.m->stream_cfg[rtp_from(&t, 4, port)->rtp_to],
				rtp_from(&t, 1, port));
		}
		if (!life)
			restart(&t);
	}
	talk_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(m_lines_keep_their_places_over_a_restart),
		cmocka_unit_test(one_who_unsubscribed_begins_again),
		cmocka_unit_test(joined_parties_stay_so_by_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
