/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MIKEY in a terminal's SDP, and the response to its message. The response waits in mikey_host.h
 * until the answer. */
#include "keying/mikey_row_int.h"

#include <errno.h>

#include "base/hash.h"
#include "base/secmem.h"
#include "proto/base64.h"

struct mikey_env mikey_row_env(const struct mikey_host *h)
{
	return (struct mikey_env){.now_ntp = mikey_ntp(h->clock.real())};
}

struct str mikey_row_failure(struct pool *p, enum mikey_failure f, const struct mikey_run *run)
{
	if (f == MIKEY_FAIL_REFUSED)
		return pool_printf(
			p, "the terminal reports: %s", mikey_error_text(run->peer_error));
	return str_from(mikey_failure_text(f));
}

struct keying_error mikey_row_error(struct str detail)
{
	return (struct keying_error){.reason = NGE_MIKEY, .detail = detail};
}

struct keying_error mikey_row_refuses(
	const struct keying_error *before, struct str detail, const struct keying_in *in)
{
	if (!in->emergency)
		return mikey_row_error(detail);
	return (struct keying_error){
		before->reason, pool_printf(in->p, "MIKEY: " STR_FMT, STR_ARG(detail))};
}

/* --- Lines ------------------------------------------------------------------------------------ */

bool mikey_row_said(struct said *out, const struct sdp_media *m, const struct keying_in *in)
{
	const struct sdp_keymgmt *line;
	uint8_t *buf;
	int n;

	*out = (struct said){0};
	if (!in->host->mikey || !sdp_proto_is_secure(m->proto) || sdp_proto_is_dtls(m->proto))
		return false;
	sdp_keymgmt_read(&out->lines, in->sdp, m);
	line = sdp_keymgmt_find(&out->lines, MIKEY_PROTOCOL);
	if (!line)
		return false;
	out->text = line->data;
	buf = pool_alloc(in->p, MIKEY_MESSAGE_MAX);
	n = buf ? base64_decode(buf, MIKEY_MESSAGE_MAX, line->data) : 0;
	if (n > 0)
		out->message = (struct str){(const char *)buf, (size_t)n};
	return true;
}

uint64_t mikey_row_hash(struct str text)
{
	return hash_siphash((const uint8_t[16]){0}, text.s, text.len) | 1;
}

uint64_t mikey_row_number(struct str message, const struct keying_in *in)
{
	const struct mikey_host *h = in->host->mikey;
	struct str text = pool_printf(in->p, "%zu " STR_FMT " " STR_FMT " %llx", in->r->call_id.len,
		STR_ARG(in->r->call_id), STR_ARG(in->r->from_tag),
		(unsigned long long)mikey_host_hash(h, message));

	/* Above the values that name no exchange. */
	return text.s ? mikey_host_hash(h, text) | 4 : 0;
}

/* --- Responses -------------------------------------------------------------------------------- */

struct looked_up {
	struct mikey_host *host;
	struct mikey_party party;
	bool emergency;
};

/* mikey_store.find */
static int find_party(void *arg, const struct mikey_ask *ask, struct mikey_identity *mine,
	struct mikey_peer *peer)
{
	struct looked_up *l = arg;
	bool allowed = false;

	if (mikey_config_find(l->host->config, &l->party, &ask->from))
		return -ENOENT;
	if (ask->to.len && !mikey_id_eq(&ask->to, &l->party.mine.id))
		return -ENOENT;
	for (uint32_t i = 0; i < l->party.modes; i++)
		allowed |= l->party.mode[i] == ask->mode;
	*mine = l->party.mine;
	*peer = l->party.peer;
	return allowed && l->party.may_initiate ? 0 : -EACCES;
}

/* mikey_store.afford */
static bool afford(void *arg, const struct mikey_peer *peer)
{
	struct looked_up *l = arg;

	return mikey_host_afford(l->host, peer, l->emergency);
}

uint8_t mikey_row_suites(
	uint8_t out[MIKEY_SUITES_MAX], uint32_t allowed, const struct keying_in *in)
{
	uint32_t n = 0;

	allowed &= ~(1u << SUITE_PLAIN);
	for (uint32_t i = 0; i < SUITE_COUNT && in->policy->offer[i] != SUITE_PLAIN; i++) {
		uint8_t s = in->policy->offer[i];

		if (allowed >> s & 1 && mikey_suite_known((enum srtp_suite_id)s))
			out[n++] = s;
		allowed &= ~(1u << s);
	}
	for (uint8_t s = 0; s < SUITE_COUNT; s++)
		if (allowed >> s & 1 && mikey_suite_known((enum srtp_suite_id)s))
			out[n++] = s;
	return (uint8_t)n;
}

static enum mikey_failure respond(
	struct mikey_talk *t, const struct said *said, uint32_t suites, const struct keying_in *in)
{
	struct mikey_host *h = in->host->mikey;
	const struct mikey_limits *limits = mikey_config_limits(h->config);
	struct looked_up up = {.host = h, .emergency = in->emergency};
	const struct mikey_store store = {find_party, afford, &up};
	struct mikey_accept accept = {.modes = (1u << MIKEY_MODE_COUNT) - 1,
		.media = (uint8_t)said->lines.places,
		.null_key_encryption = limits->null_key_encryption,
		.weak_dh = limits->weak_dh,
		.sdp_ids = sdp_keymgmt_ids(&said->lines, in->p),
		.skew_s = limits->skew_s};
	const struct mikey_answer answer = {
		.store = &store, .accept = &accept, .replay = h->replay, .env = mikey_row_env(h)};
	struct mikey_out out = {.buf = t->response, .cap = MIKEY_MESSAGE_MAX};
	enum mikey_failure f;

	accept.suites = mikey_row_suites(accept.suite, in->policy->accept & suites, in);
	if (!accept.sdp_ids.s)
		return MIKEY_FAIL_INTERNAL;
	if (!said->lines.places || said->lines.places > MIKEY_MEDIA_MAX)
		return MIKEY_FAIL_SESSIONS;
	f = mikey_respond(&t->run, &answer, said->message, &out, &t->keys);
	secmem_wipe(&up, sizeof(up));
	t->responder = true;
	t->media = t->keys.media;
	t->len = out.len;
	return f;
}

struct mikey_talk *mikey_row_talk(const struct said *said, uint32_t suites, uint64_t id,
	const struct keying_in *in, struct keying_error *why)
{
	struct mikey_host *h = in->host->mikey;
	struct mikey_talk *t = mikey_talk_find(h, id);
	enum mikey_mode mode = MIKEY_MODE_COUNT;
	enum mikey_failure f = MIKEY_FAIL_INTERNAL;

	if (t)
		return t;
	/* Allocate first: mikey_respond() remembers the message, so it could not be sent again. */
	if (id)
		f = mikey_talk_create(&t, h, in->r->call_id, MIKEY_MESSAGE_MAX);
	if (t) {
		f = respond(t, said, suites, in);
		mode = f == MIKEY_FAIL_MALFORMED ? mode : (enum mikey_mode)t->run.mode;
	}
	mikey_host_count(h, mode, false, f);
	if (!f) {
		mikey_talk_add(h, t, id);
		return t;
	}
	*why = mikey_row_refuses(
		why, mikey_row_failure(in->p, f, t ? &t->run : &(struct mikey_run){0}), in);
	mikey_talk_destroy(t);
	return NULL;
}
