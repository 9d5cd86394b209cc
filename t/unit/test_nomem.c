/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory runs out at each allocation of a request in turn. Then the request either succeeded or
 * left nothing: no partial call, port, context or key. A repetition succeeds, and the end of the
 * call frees everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/secmem.h"
#include "call/call.h"
#include "call/call_int.h"
#include "dispatch_rig.h"

/* --- Allocations (the linker leads them here: see the Makefile) ------------------------------- */

void *__real_malloc(size_t len);
void *__real_calloc(size_t n, size_t len);
void __real_free(void *p);
void *__real_secmem_alloc(size_t len);
void *__wrap_malloc(size_t len);
void *__wrap_calloc(size_t n, size_t len);
void __wrap_free(void *p);
void *__wrap_secmem_alloc(size_t len);

#define LIVE 8192

static struct {
	void *at[LIVE]; /* allocated and not yet freed */
	uint32_t n, count, fail_at;
	bool watch, fired;
} heap;

static bool runs_out(void)
{
	if (!heap.watch || ++heap.count != heap.fail_at)
		return false;
	heap.fired = true;
	return true;
}

static void *live(void *p)
{
	if (p && heap.n < LIVE)
		heap.at[heap.n++] = p;
	return p;
}

void *__wrap_malloc(size_t len)
{
	return runs_out() ? NULL : live(__real_malloc(len));
}

void *__wrap_calloc(size_t n, size_t len)
{
	return runs_out() ? NULL : live(__real_calloc(n, len));
}

void *__wrap_secmem_alloc(size_t len)
{
	return runs_out() ? NULL : __real_secmem_alloc(len);
}

void __wrap_free(void *p)
{
	for (uint32_t i = heap.n; p && i > 0; i--)
		if (heap.at[i - 1] == p) {
			heap.at[i - 1] = heap.at[--heap.n];
			break;
		}
	__real_free(p);
}

/* --- Replies and logs ------------------------------------------------------------------------- */

#define HEAD  "v=0\r\no=- 42 7 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
#define AUDIO "m=audio 4000 RTP/AVP 0 8\r\na=rtpmap:0 PCMU/8000\r\n"
#define SAVP  "m=audio 4002 RTP/SAVP 0 8\r\na=crypto:" C80A "\r\na=crypto:" C32A "\r\n"
#define VIDEO "m=video 4004 RTP/SAVP 96\r\na=crypto:" C80A "\r\n"

#define L80     "AES_CM_128_HMAC_SHA1_80 "
#define SAVP_B  "m=audio 5002 RTP/SAVP 0 8\r\na=crypto:1 " L80 K80C "\r\n"
#define VIDEO_B "m=video 5004 RTP/SAVP 96\r\na=crypto:1 " L80 K80C "\r\n"

#define OFFER  "\"command\":\"offer\",\"from-tag\":\"a\","
#define ANSWER "\"command\":\"answer\",\"from-tag\":\"a\",\"to-tag\":\"b\","
#define FLAGS \
	"\"flags\":[\"codec-strip-G729\",\"no-such-flag\"],\"replace\":[\"origin\",\"SDP-version\"],"

#define LEGACY "\"OSRTP\":[\"offer-legacy\",\"accept-legacy\"],"

/* Requests of one call, in order; SDP follows. */
static const struct step {
	const char *words, *sdp;
	bool once; /* repeated it is an error */
} steps[] = {
	{OFFER FLAGS "\"metadata\":\"m\",\"label\":\"l\"", HEAD AUDIO, false},
	{ANSWER "\"x\":1", HEAD AUDIO, false},
	{OFFER "\"to-tag\":\"b\",\"transport-protocol\":\"RTP/SAVP\"", HEAD SAVP VIDEO, false},
	{ANSWER "\"x\":1", HEAD SAVP_B VIDEO_B, false},
	{"\"command\":\"block media\",\"from-tag\":\"a\"", NULL, false},
	{"\"command\":\"query\"", NULL, false},
	{"\"command\":\"subscribe request\",\"from-tag\":\"a\",\"to-tag\":\"c\"", NULL, false},
	{"\"command\":\"subscribe answer\",\"to-tag\":\"c\"", HEAD SAVP_B VIDEO_B, false},
	{"\"command\":\"unsubscribe\",\"to-tag\":\"c\"", NULL, true},
	{OFFER LEGACY "\"to-tag\":\"b\",\"media-echo\":\"both\"", HEAD SAVP VIDEO, false},
	{ANSWER "\"x\":1", HEAD SAVP_B VIDEO_B "m=video 4004 RTP/AVP 96\r\n", false},
	{"\"command\":\"statistics\"", NULL, false},
	{OFFER "\"via-branch\":\"v2\"", HEAD SAVP, false},
	{OFFER "\"to-tag\":\"b\",\"flags\":[\"passthrough\"]", HEAD SAVP, false},
	{"\"command\":\"delete\",\"delete-delay\":0", NULL, false},
};

static void escape(struct sbuf *b, const char *sdp)
{
	for (; *sdp; sdp++)
		if (*sdp == '\r' || *sdp == '\n')
			sbuf_str(b, *sdp == '\r' ? STR("\\r") : STR("\\n"));
		else
			sbuf_put(b, sdp, 1);
}

struct held {
	uint64_t calls;
	uint32_t ports, ctxs, keys, legs;
};

static struct held held(const struct dispatch_rig *r)
{
	struct calls_counters n;

	calls_counters(r->talk.c, &n);
	return (struct held){.calls = n.current,
		.ports = r->talk.m->ports,
		.ctxs = r->talk.m->ctxs,
		.keys = r->talk.m->keys,
		.legs = r->talk.c->keys.live};
}

/* False: no reply, or an error. */
static bool say(struct dispatch_rig *r, const struct step *s, uint32_t fail_at)
{
	struct sbuf message, reply;
	bool ok;

	sbuf_init(&message, 0);
	sbuf_init(&reply, 0);
	sbuf_printf(&message, "{\"call-id\":\"call\",%s", s->words);
	if (s->sdp) {
		sbuf_str(&message, STR(",\"sdp\":\""));
		escape(&message, s->sdp);
		sbuf_str(&message, STR("\""));
	}
	sbuf_str(&message, STR("}"));
	assert_int_equal(message.err, 0);
	heap.count = 0;
	heap.fail_at = fail_at;
	heap.fired = false;
	heap.watch = true;
	(void)ng_dispatch_plain(r->dispatch, sbuf_view(&message), 1, &reply);
	heap.watch = false;
	ok = reply.p && strstr(reply.p, "\"result\":\"ok\"");
	if (!ok && !fail_at)
		print_error("%s: %s\n", s->words, reply.p ? reply.p : "no reply");
	sbuf_fini(&message);
	sbuf_fini(&reply);
	mock_relay_check(r->talk.m);
	return ok;
}

static bool same(struct held a, struct held b)
{
	return a.calls == b.calls && a.ports == b.ports && a.ctxs == b.ctxs && a.keys == b.keys &&
		a.legs == b.legs;
}

/* The resources the call holds after each step without failures. */
static void learn(struct held after[])
{
	struct dispatch_rig r;

	dispatch_start(&r);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		assert_true(say(&r, &steps[i], 0));
		after[i] = held(&r);
	}
	dispatch_stop(&r);
}

/* False: the request makes fewer allocations. */
static bool try_one(size_t k, uint32_t fail_at, const struct held after[])
{
	static const struct step end = {"\"command\":\"delete\",\"delete-delay\":0", NULL, false};
	uint32_t before_all = heap.n;
	struct held before, now;
	struct dispatch_rig r;
	bool fired, ok;

	dispatch_start(&r);
	for (size_t i = 0; i < k; i++)
		assert_true(say(&r, &steps[i], 0));
	before = held(&r);
	ok = say(&r, &steps[k], fail_at);
	fired = heap.fired;
	now = held(&r);
	if (ok ? !same(now, after[k]) : !same(now, before) && !same(now, after[k]))
		fail_msg("%s, allocation %u, %s: %u calls, %u ports, %u contexts, %u keys, %u legs",
			steps[k].words, fail_at, ok ? "carried out" : "refused",
			(unsigned)now.calls, now.ports, now.ctxs, now.keys, now.legs);
	if (!(steps[k].once && same(now, after[k]))) {
		if (!say(&r, &steps[k], 0))
			fail_msg("%s, allocation %u: not even when it is said again",
				steps[k].words, fail_at);
		now = held(&r);
		assert_true(same(now, after[k]));
	}
	assert_true(say(&r, &end, 0));
	assert_int_equal(held(&r).calls, 0);
	dispatch_stop(&r);
	if (heap.n != before_all)
		fail_msg("%s, allocation %u: %d are not freed", steps[k].words, fail_at,
			(int)(heap.n - before_all));
	return fired;
}

static void no_half_made_call_stays_whichever_allocation_fails(void **state)
{
	struct held after[ARRAY_LEN(steps)];
	uint32_t tried = 0;

	(void)state;
	learn(after);
	for (size_t k = 0; k < ARRAY_LEN(steps); k++)
		for (uint32_t n = 1; try_one(k, n, after); n++)
			tried++;
	/* Checks that the wrapping works: a request makes a few dozen allocations. */
	assert_true(tried > 10 * ARRAY_LEN(steps));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_half_made_call_stays_whichever_allocation_fails),
	};

	log_open("test", LOG_CRIT, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
