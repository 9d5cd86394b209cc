/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mark of loop-protect. An SDP that xcipher wrote may come back, through a proxy that spirals
 * the call. It is then passed on unchanged, so the mark must prove that xcipher wrote this SDP: a
 * terminal knows the marks it received, and could copy one to get its own SDP past the relay. So
 * the mark is an HMAC of the Call-ID and the SDP, under a key that lives as long as the process.
 * The o=, s= and b= lines are not covered, because proxies change them and no media depend on them.
 * Pure. */
#include "offer/loop_protect.h"
#include "base/hmac.h"
#include "base/sbuf.h"
#include "base/secmem.h"
#include "call/call.h"

#define NAME STR("xcipher")
enum { DIGITS = sizeof(LOOP_NO_MARK) - 1 };

static void add_lines(struct sbuf *b, const struct sdp_line *l)
{
	for (; l; l = l->next) {
		bool changes = l->type == 'o' || l->type == 's' || l->type == 'b';

		if (changes || (l->type == 'a' && str_eq(l->name, NAME)))
			continue;
		sbuf_str(b, l->text);
		sbuf_put(b, "\n", 1);
	}
}

/* False: out of memory. */
static bool mark_of(char out[DIGITS], const struct call_policy *policy, struct str call_id,
	const struct sdp *sdp)
{
	uint8_t mac[HMAC_SHA256_LEN];
	struct str part;
	struct sbuf b;
	bool done;

	sbuf_init(&b, 0);
	sbuf_printf(&b, "%zu " STR_FMT "\n", call_id.len, STR_ARG(call_id));
	add_lines(&b, sdp->session);
	for (uint32_t i = 0; i < sdp->media_count; i++)
		add_lines(&b, sdp->media[i].lines);
	part = sbuf_view(&b);
	done = !b.err && hmac_sha256(mac, policy->loop_key, sizeof(policy->loop_key), &part, 1);
	sbuf_fini(&b);
	for (size_t i = 0; done && i < DIGITS; i++)
		out[i] = "0123456789abcdef"[mac[i / 2] >> (i % 2 ? 0 : 4) & 15];
	return done;
}

bool loop_is_ours(const struct call_policy *policy, struct str call_id, const struct sdp *sdp)
{
	const struct sdp_line *l = sdp_attr(sdp->session, NAME);
	char mark[DIGITS];
	bool ours = false;

	if (!l || !mark_of(mark, policy, call_id, sdp))
		return false;
	for (; l; l = sdp_attr(l->next, NAME))
		ours |= l->arg.len == DIGITS && secmem_equal(l->arg.s, mark, DIGITS);
	return ours;
}

struct str loop_mark(
	struct pool *p, const struct call_policy *policy, struct str call_id, struct str body)
{
	struct sdp *sdp = pool_alloc(p, sizeof(*sdp));
	struct str out = pool_strdup(p, body);
	const struct sdp_line *l;
	char mark[DIGITS];
	uint32_t line;

	if (!sdp || !out.s || sdp_parse(sdp, p, out, &line) != SDP_OK ||
		!mark_of(mark, policy, call_id, sdp))
		return STR_NONE;
	for (l = sdp_attr(sdp->session, NAME); l; l = sdp_attr(l->next, NAME))
		if (str_eq(l->arg, STR(LOOP_NO_MARK)))
			memcpy((char *)out.s + (l->arg.s - out.s), mark, DIGITS);
	return out;
}
