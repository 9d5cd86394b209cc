/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saves and restores a call, for the tests of restarts. Included after cmocka.h. */
#ifndef SAVE_TALK_H
#define SAVE_TALK_H

#include "call/call_int.h"
#include "call/call.h"
#include "call_talk.h"
#include "persist/restore.h"
#include "persist/save.h"

#define FULL                                                                                   \
	"a=crypto:" C80A "\r\na=crypto:" C32A "\r\na=sendrecv\r\nm=video 4002 RTP/SAVP 96\r\n" \
	"a=crypto:1 AES_CM_128_HMAC_SHA1_80 " K80A "|2^20|1:4;" K80B "|2^20|2:4\r\n"

struct saved {
	struct sbuf whole, state;
	struct save_item item;
};

/* Starts one call with two media: SRTP with MKIs toward a, plain RTP toward b. */
static inline void make_call(struct talk *t)
{
	struct ng_request r =
		talk_request("a", "", talk_body(t, "198.51.100.1", 4000, "RTP/SAVP", FULL));

	r.transport = STR("RTP/AVP");
	talk_send(t, &r, false);
	assert_null(t->reply.error);
	talk_answer(t, "a", "b",
		talk_body(t, "198.51.100.2", 5000, "RTP/AVP", "m=video 5002 RTP/AVP 96\r\n"));
	assert_null(t->reply.error);
}

static inline bool next(struct talk *t, struct sbuf *b, struct save_item *item)
{
	sbuf_fini(b);
	sbuf_init(b, 0);
	return calls_save_next(t->c, t->now, b, item);
}

static inline void save(struct talk *t, struct saved *s)
{
	memset(s, 0, sizeof(*s));
	assert_true(next(t, &s->whole, &s->item));
	assert_int_equal(s->item.what, SAVE_CALL);
	assert_int_equal(s->whole.err, 0);
	assert_false(next(t, &s->state, &s->item));
}

static inline int restore(struct talk *t, struct str whole, struct str state, const char **why)
{
	struct pool *p;
	int err;

	assert_int_equal(pool_create(&p, 8u << 20), 0);
	err = calls_restore(t->c, p, whole, state, t->now, why);
	pool_destroy(p);
	mock_relay_check(t->m);
	return err;
}

/* The same daemon, killed and started again. */
static inline void reborn(struct talk *t)
{
	calls_destroy(t->c);
	assert_true(mock_relay_empty(t->m));
	t->m->resumes = 0;
	assert_int_equal(calls_create(&t->c, &t->policy, &t->m->relay), 0);
}

static inline uint16_t port_of(struct talk *t, uint32_t media)
{
	return t->sdp->media[media].port;
}

#endif
