/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two terminals that speak through calls_offer() and calls_answer(), for the tests of call/.
 * Included after cmocka.h. */
#ifndef CALL_TALK_H
#define CALL_TALK_H

#include <stdlib.h>

#include "base/clock.h"
#include "call/call.h"
#include "offer/exchange.h"
#include "proto/sdes.h"
#include "mock_relay.c"

#define K80A "inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"
#define K80B "inline:NzB4d1BINUAvLEw6UzF3WSJ+PSdFcGdUJShpX1Zj"
#define K80C "inline:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkw" /* of a second terminal */
#define C80A "1 AES_CM_128_HMAC_SHA1_80 " K80A
#define C32A "2 AES_CM_128_HMAC_SHA1_32 " K80B

struct talk {
	struct mock_relay *m;
	struct calls *c;
	struct call_policy policy;
	struct pool *p; /* of the last request */
	struct call_reply reply;
	struct sdp *sdp; /* of the last reply */
	uint64_t now;
};

static inline void talk_start(struct talk *t)
{
	memset(t, 0, sizeof(*t));
	t->m = malloc(sizeof(*t->m));
	assert_non_null(t->m);
	mock_relay_init(t->m);
	t->now = 1000 * NS_PER_SEC;
	t->policy = (struct call_policy){
		.sdes = {.offer = {SUITE_AES_CM_128_80, SUITE_AES_CM_128_32},
			.accept = 1u << SUITE_AES_CM_128_80 | 1u << SUITE_AES_CM_128_32},
		.learning = MEDIA_LEARN_HEURISTIC,
		.timeout_ns = 60 * NS_PER_SEC,
		.silent_timeout_ns = 3600 * NS_PER_SEC,
		.offer_timeout_ns = 300 * NS_PER_SEC,
		.delete_delay_ns = 30 * NS_PER_SEC,
		.loop_key = "0123456789abcdef"};
	assert_int_equal(calls_create(&t->c, &t->policy, &t->m->relay), 0);
}

/* Checks that everything was given back, whatever the test did. */
static inline void talk_end(struct talk *t)
{
	struct calls_counters n;

	calls_counters(t->c, &n);
	assert_int_equal(n.streams, 2 * t->m->ports);
	calls_destroy(t->c);
	assert_true(mock_relay_empty(t->m));
	pool_destroy(t->p);
	free(t->m);
}

static inline struct ng_request talk_request(const char *from, const char *to, const char *body)
{
	return (struct ng_request){.call_id = STR("call"),
		.from_tag = str_from(from),
		.to_tag = str_from(to),
		.sdp = str_from(body),
		.tos = -1,
		.delete_delay = -1,
		.limit = -1};
}

static inline void talk_pool(struct talk *t)
{
	pool_destroy(t->p);
	assert_int_equal(pool_create(&t->p, 8u << 20), 0);
}

static inline void talk_send(struct talk *t, const struct ng_request *r, bool is_answer)
{
	talk_pool(t);
	/* Count this request only: without changes it must commit nothing. */
	t->m->rx_new = t->m->tx_new = t->m->relearn = 0;
	if (is_answer)
		calls_answer(t->c, t->p, r, t->now, &t->reply);
	else
		calls_offer(t->c, t->p, r, t->now, &t->reply);
	mock_relay_check(t->m);
	t->sdp = NULL;
	if (t->reply.error)
		return;
	t->sdp = pool_alloc(t->p, sizeof(*t->sdp));
	assert_int_equal(sdp_parse(t->sdp, t->p, t->reply.sdp, NULL), SDP_OK);
}

static inline void talk_offer(struct talk *t, const char *from, const char *to, const char *body)
{
	struct ng_request r = talk_request(from, to, body);

	talk_send(t, &r, false);
}

static inline void talk_answer(struct talk *t, const char *from, const char *to, const char *body)
{
	struct ng_request r = talk_request(from, to, body);

	talk_send(t, &r, true);
}

/* Finds the n-th crypto line of a media in the last reply; false if there is none. */
static inline bool talk_line(struct talk *t, uint32_t media, uint32_t n, struct sdes *out)
{
	const struct sdp_line *l = sdp_attr(t->sdp->media[media].lines, STR("crypto"));

	while (l && n--)
		l = sdp_attr(l->next, STR("crypto"));
	if (!l)
		return false;
	assert_int_equal(sdes_parse(out, NULL, l->arg), SDES_OK);
	return true;
}

/* "TAG NAME" of each crypto line of the last reply's media, separated by commas. */
static inline const char *talk_lines(struct talk *t, uint32_t media)
{
	struct str text = STR("");
	struct sdes s;

	for (uint32_t i = 0; talk_line(t, media, i, &s); i++)
		text = pool_printf(t->p, "%s%s%u %s", text.s, i ? "," : "", (unsigned)s.tag,
			srtp_suite_get(s.master.suite)->name);
	return text.s;
}

static inline const char *talk_body(
	struct talk *t, const char *addr, unsigned port, const char *proto, const char *attrs)
{
	static char body[4][4096];
	static unsigned turn;
	char *b = body[turn++ % 4];

	(void)t;
	snprintf(b, sizeof(body[0]),
		"v=0\r\no=- 42 7 IN IP4 %s\r\ns=-\r\nc=IN %s %s\r\nt=0 0\r\n"
		"m=audio %u %s 0 8\r\na=rtpmap:0 PCMU/8000\r\n%s",
		addr, strchr(addr, ':') ? "IP6" : "IP4", addr, port, proto, attrs);
	return b;
}

#endif
