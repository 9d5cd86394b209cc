/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The R_MESSAGE at the initiator. A message that fails changes nothing: the right one may come
 * later. */
#include <errno.h>

#include "base/secmem.h"
#include "keying/mikey_int.h"

/* State of an initiator: a copy of the run, which replaces it on success. */
struct work {
	struct mikey_run run;
	const struct mikey_end *e;
	struct mikey_in in;
	struct mikey_key_list keys;
	uint8_t buf[MIKEY_KEMAC_MAX];
};

static enum mikey_type expected(const struct mikey_run *r)
{
	switch (r->mode) {
	case MIKEY_PSK:
		return MIKEY_TYPE_PSK_VERIFY;
	case MIKEY_PKE:
		return MIKEY_TYPE_PKE_VERIFY;
	case MIKEY_DH:
		return MIKEY_TYPE_DH_RESP;
	case MIKEY_DHHMAC:
		return MIKEY_TYPE_DHHMAC_RESP;
	default:
		return MIKEY_TYPE_RSAR_RESP;
	}
}

/* The timestamp of the response is that of the I_MESSAGE: an older response does not serve. */
static bool ours(const struct work *w)
{
	return w->in.m.header.csb_id == w->run.csb_id && w->in.t &&
		w->in.t->kind == w->run.ts_type && w->in.t->time == w->run.time;
}

static enum mikey_failure form(struct work *w, struct str message, uint8_t *peer_error)
{
	enum mikey_failure f = mikey_in_read(&w->in, message);
	const struct mikey_payload *err;

	if (f)
		return f;
	if (w->in.m.header.type == MIKEY_TYPE_ERROR) {
		err = mikey_payload_find(&w->in.m, MIKEY_P_ERR, 0);
		if (!err || w->in.m.header.csb_id != w->run.csb_id)
			return MIKEY_FAIL_MALFORMED;
		*peer_error = err->kind;
		return MIKEY_FAIL_REFUSED;
	}
	if (w->in.m.header.type != expected(&w->run))
		return MIKEY_FAIL_TYPE;
	return ours(w) ? MIKEY_OK : MIKEY_FAIL_AUTH;
}

/* The responder's name: in an ID payload, or in its certificate. */
static enum mikey_failure peer_name(struct work *w)
{
	struct mikey_run *r = &w->run;
	const struct mikey_id *want = &r->peer;

	if (w->in.idi.len && !mikey_id_eq(&w->in.idi, &r->mine) &&
		!(w->e->mine->cert && mikey_cert_has(w->e->mine->cert, &w->in.idi)))
		return MIKEY_FAIL_OTHER_IDENTITY;
	if (w->in.idr.len && want->len && !mikey_id_eq(&w->in.idr, want))
		return MIKEY_FAIL_OTHER_IDENTITY;
	if (w->in.idr.len)
		r->idr = r->peer = w->in.idr;
	return MIKEY_OK;
}

/* The responder names its own SSRCs (RFC 3830 6.1.1). A response without crypto sessions changes
 * nothing. */
static enum mikey_failure sessions(struct work *w)
{
	const struct mikey_header *h = &w->in.m.header;
	struct mikey_run *r = &w->run;
	bool chosen = r->mode == MIKEY_RSAR;

	if (!h->sessions && !chosen)
		return MIKEY_OK;
	if (h->map_type != MIKEY_MAP_SRTP_ID || h->sessions != r->sessions)
		return MIKEY_FAIL_SESSIONS;
	for (uint32_t i = 0; i < r->sessions; i++) {
		bool theirs = i % 2;

		if (!theirs && (h->cs[i].ssrc != r->cs[i].ssrc || h->cs[i].roc != r->cs[i].roc))
			return MIKEY_FAIL_SESSIONS;
		if (!chosen && h->cs[i].policy != r->cs[i].policy)
			return MIKEY_FAIL_POLICY;
		r->cs[i] = h->cs[i];
	}
	return MIKEY_OK;
}

/* The suite that the responder of RSA-R chose has to be one that we offered. */
static enum mikey_failure chosen(struct work *w)
{
	struct mikey_run *r = &w->run;
	if (!mikey_payload_find(&w->in.m, MIKEY_P_SP, 0)) /* we sent one: the response needs one */
		return MIKEY_FAIL_MISSING;
	for (uint32_t i = 0; i < r->sessions; i++) {
		enum srtp_suite_id s = mikey_policy_of(&w->in.m, r->cs[i].policy);
		bool offered = false;
		for (uint32_t k = 0; k < r->suites; k++)
			offered |= r->suite[k] == s;
		if (!offered)
			return MIKEY_FAIL_POLICY;
		r->cs_suite[i] = s;
	}
	return MIKEY_OK;
}

static enum mikey_failure signed_by_peer(struct work *w)
{
	enum mikey_failure f = mikey_in_cert(&w->in, w->e->peer, &w->run.peer, w->e->env.now_ntp);

	if (!f)
		f = mikey_in_sign(
			&w->in, w->e->peer->cert, w->run.mode == MIKEY_RSAR ? &w->run : NULL);
	if (!f && !w->run.peer.len && w->in.cert)
		(void)mikey_cert_name(w->in.cert, &w->run.peer);
	return f;
}

static void one_key(struct work *w, const struct mikey_kv *kv)
{
	w->keys.count = 1;
	w->keys.key[0] = (struct mikey_key_data){
		.type = MIKEY_KEY_TGK, .key = mikey_bytes(w->run.tgk, w->run.tgk_len), .kv = *kv};
}

static enum mikey_failure finish_verify(struct work *w)
{
	static const struct mikey_kv none = {.type = MIKEY_KV_NULL};

	one_key(w, &none);
	return w->in.v ? mikey_in_mac(&w->in, w->run.auth_key, &w->run) : MIKEY_FAIL_MISSING;
}

static enum mikey_failure finish_dh(struct work *w)
{
	const struct mikey_payload *theirs = w->in.dh[0], *mine = w->in.dh[1];
	struct mikey_run *r = &w->run;
	enum mikey_failure f =
		r->mode == MIKEY_DH ? signed_by_peer(w) : mikey_in_mac(&w->in, r->auth_key, NULL);
	int err;

	if (f)
		return f;
	if (!theirs || !mine)
		return MIKEY_FAIL_MISSING;
	if (theirs->kind != r->dh_group || mine->kind != r->dh_group ||
		!str_eq(mine->data, mikey_bytes(r->tgk, r->tgk_len)))
		return MIKEY_FAIL_DH_VALUE;
	err = mikey_dh_shared(
		r->dh_group, mikey_bytes(r->secret, r->secret_len), theirs->data, r->tgk);
	if (err)
		return err == -ERANGE ? MIKEY_FAIL_DH_VALUE : MIKEY_FAIL_INTERNAL;
	one_key(w, &theirs->kv);
	return MIKEY_OK;
}

static enum mikey_failure open_rsar(struct work *w)
{
	struct mikey_run *r = &w->run;
	struct mikey_transport t;
	struct mikey_open o = {.t = &t, .mac = true, .buf = w->buf};
	enum mikey_failure f = MIKEY_FAIL_INTERNAL;
	struct mikey_id id;

	if (mikey_in_envelope(&w->in, w->e->mine->cert, &t, r))
		f = mikey_in_keys(&w->in, r, &o, &w->keys);
	secmem_wipe(&t, sizeof(t));
	if (f)
		return f;
	if (mikey_id_set(&id, w->keys.id_type, w->keys.id) || !id.len ||
		(w->in.idr.len && !mikey_id_eq(&id, &w->in.idr)) ||
		!mikey_cert_has(w->in.cert ? w->in.cert : w->e->peer->cert, &id))
		return MIKEY_FAIL_CERT_NAME;
	return MIKEY_OK;
}

static enum mikey_failure finish_rsar(struct work *w)
{
	enum mikey_failure f = signed_by_peer(w);

	if (f)
		return f;
	if (!w->in.kemac || !w->in.pke || !mikey_cert_is_private(w->e->mine->cert))
		return MIKEY_FAIL_MISSING;
	if (w->in.rand) /* a second one (RFC 4738 3.7) */
		return MIKEY_FAIL_MALFORMED;
	f = open_rsar(w);
	return f ? f : chosen(w);
}

static enum mikey_failure prove(struct work *w)
{
	switch (w->run.mode) {
	case MIKEY_PSK:
	case MIKEY_PKE:
		return finish_verify(w);
	case MIKEY_RSAR:
		return finish_rsar(w);
	default:
		return finish_dh(w);
	}
}

static enum mikey_failure all_steps(
	struct work *w, struct str message, struct mikey_keys *keys, uint8_t *peer_error)
{
	static const struct mikey_kv none = {.type = MIKEY_KV_NULL};
	enum mikey_failure f;

	if (!message.len && !w->run.verify &&
		(w->run.mode == MIKEY_PSK || w->run.mode == MIKEY_PKE)) {
		one_key(w, &none);
		return mikey_keys_make(keys, &w->run, &w->keys);
	}
	f = form(w, message, peer_error);
	if (!f)
		f = peer_name(w);
	if (!f)
		f = sessions(w);
	if (!f)
		f = prove(w);
	if (!f)
		f = mikey_keys_make(keys, &w->run, &w->keys);
	w->run.believed = !f;
	return f;
}

enum mikey_failure mikey_finish(struct mikey_run *run, const struct mikey_end *e,
	struct str message, struct mikey_keys *keys)
{
	enum mikey_failure f = MIKEY_FAIL_STATE;
	struct work w;

	memset(keys, 0, sizeof(*keys));
	if (mikey_run_check(run) || !run->initiator || run->state != MIKEY_SENT)
		return f;
	memset(&w, 0, sizeof(w));
	w.run = *run;
	w.e = e;
	f = all_steps(&w, message, keys, &run->peer_error);
	mikey_in_free(&w.in);
	run->failure = (uint8_t)f;
	if (f) {
		secmem_wipe(keys, sizeof(*keys));
	} else {
		*run = w.run;
		run->failure = MIKEY_OK;
		run->state = MIKEY_DONE;
		secmem_wipe(run->tgk, sizeof(run->tgk));
		secmem_wipe(run->secret, sizeof(run->secret));
		run->tgk_len = run->secret_len = 0;
	}
	secmem_wipe(&w, sizeof(w));
	return f;
}

int mikey_run_check(const struct mikey_run *r)
{
	bool ok = r->layout == MIKEY_RUN_LAYOUT && r->state <= MIKEY_FAILED &&
		r->mode < MIKEY_MODE_COUNT && r->failure < MIKEY_FAIL_COUNT &&
		r->ts_type <= MIKEY_TS_NTP && mikey_dh_len(r->dh_group) &&
		r->media <= MIKEY_MEDIA_MAX && r->secret_len <= MIKEY_TGK_MAX &&
		r->tgk_len <= MIKEY_TGK_MAX && r->suites <= MIKEY_SUITES_MAX;

	if (ok && r->state == MIKEY_SENT)
		ok = r->media && r->sessions == 2 * r->media;
	for (uint32_t i = 0; ok && i < ARRAY_LEN(r->cs_suite); i++)
		ok = r->cs_suite[i] < SUITE_COUNT;
	for (uint32_t i = 0; ok && i < r->suites; i++)
		ok = mikey_suite_known(r->suite[i]);
	return ok ? 0 : -EINVAL;
}
