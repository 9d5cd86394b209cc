/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What two phones say of their media, and the flags of a script: offer, answer, the other way
 * round, a listener that subscribes to others later, connect. The first line is the script's raw
 * flags; then SDP, cut by a zero byte into as many bodies as there are. Whatever it is, the relay's
 * handles are held by somebody or free, what is written is SDP, and at the end nothing is left. */
#include <stdlib.h>

#include "base/clock.h"
#include "call/call.h"
#include "../unit/mock_relay.c"
#include "call/tick.h"
#include "offer/connect.h"
#include "offer/exchange.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static const struct call_policy policy = {
	.sdes = {.offer = {SUITE_AES_CM_128_80, SUITE_AES_CM_128_32},
		.accept = 1u << SUITE_AES_CM_128_80 | 1u << SUITE_AES_CM_128_32},
	.learning = MEDIA_LEARN_HEURISTIC,
	.loop_key = "0123456789abcdef"};

struct talk {
	struct mock_relay *m;
	struct calls *c;
	struct str flags;
	uint64_t now_ns;
};

/* The flags of a request; the caller adds the tags. */
static void request(struct ng_request *r, struct pool *p, const struct talk *t, const char *command,
	struct str sdp)
{
	struct ngval *d = ngval_dict(p);

	ngval_add_str(p, d, STR("command"), str_from(command));
	ngval_add_str(p, d, STR("call-id"), STR("call"));
	ngval_add_str(p, d, STR("rtpp-flags"), t->flags);
	ngval_add_str(p, d, STR("sdp"), sdp);
	(void)ng_request_parse(r, p, d);
	r->call_id = STR("call");
	r->sdp = sdp;
}

static void say(
	struct talk *t, const char *command, const char *from, const char *to, struct str sdp)
{
	static struct sdp again;
	struct call_reply reply = {0};
	struct ng_request r;
	struct ngval *dict;
	struct pool *p;

	must(pool_create(&p, 16u << 20) == 0);
	dict = ngval_dict(p);
	request(&r, p, t, command, sdp);
	r.from_tag = str_from(from);
	r.to_tag = str_from(to);
	t->now_ns += NS_PER_SEC;
	if (!strcmp(command, "offer"))
		calls_offer(t->c, p, &r, t->now_ns, &reply);
	else if (!strcmp(command, "answer"))
		calls_answer(t->c, p, &r, t->now_ns, &reply);
	else if (!strcmp(command, "publish"))
		calls_publish(t->c, p, &r, t->now_ns, &reply, dict);
	else if (!strcmp(command, "subscribe request"))
		calls_subscribe(t->c, p, &r, t->now_ns, &reply, dict);
	else if (!strcmp(command, "subscribe answer"))
		calls_subscribe_answer(t->c, p, &r, t->now_ns, &reply);
	else if (!strcmp(command, "connect"))
		calls_connect(t->c, p, &r, t->now_ns, &reply);
	else
		calls_query(t->c, p, &r, t->now_ns, &reply, dict);
	mock_relay_check(t->m);
	if (!reply.error && reply.sdp.len && reply.sdp.len <= SDP_MAX_LEN)
		must(sdp_parse(&again, p, reply.sdp, NULL) == SDP_OK || pool_failed(p));
	pool_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const turn[][3] = {{"offer", "a", ""}, {"answer", "a", "b"},
		{"subscribe request", "a", "l"}, {"subscribe answer", "", "l"}, {"offer", "b", "a"},
		{"answer", "b", "a"}, {"offer", "a", "b"}, {"publish", "p", ""},
		{"subscribe request", "p", "l"}, {"subscribe request", "b", "l"},
		{"connect", "a", "b"}};
	static struct mock_relay m;
	struct str rest = {(const char *)data, len}, sdp;
	struct calls_counters n;
	struct talk t = {.m = &m, .now_ns = 1000 * NS_PER_SEC};

	mock_relay_init(&m);
	must(calls_create(&t.c, &policy, &m.relay) == 0);
	t.flags = str_cut(&rest, '\n');
	for (size_t i = 0; i < ARRAY_LEN(turn); i++) {
		sdp = str_cut(&rest, 0);
		say(&t, turn[i][0], turn[i][1], turn[i][2], sdp);
		if (!rest.s) /* the last body is everybody's */
			rest = sdp;
	}
	say(&t, "query", "", "", STR_NONE);
	calls_tick(t.c, t.now_ns + NS_PER_SEC);
	mock_relay_check(&m);
	calls_counters(t.c, &n);
	must(n.streams == 2 * m.ports);
	calls_destroy(t.c);
	must(mock_relay_empty(&m));
	return 0;
}
