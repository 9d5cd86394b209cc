/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICE in offers and answers. The credentials are made here, because SDP needs them at once; the
 * checks are the session's (call/session.h). Each leg has ICE of its own: what one terminal says
 * never reaches the other. Pure. */
#include "offer/neg_ice.h"
#include "base/secmem.h"
#include "call/leg_session.h"
#include "proto/sdp_ice.h"

/* --- Credentials of ours ---------------------------------------------------------------------- */

/* 6 random bits each (RFC 8839 5.4: ice-char). */
static bool draw_text(char *out, size_t len, struct keying_random *random)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	if (!keying_draw(random, out, len))
		return false;
	for (size_t i = 0; i < len; i++)
		out[i] = digit[out[i] & 63];
	return true;
}

static bool draw(struct leg_ice *ice, struct neg_in *in)
{
	ice->generation++;
	return draw_text(ice->ufrag, sizeof(ice->ufrag), &in->random) &&
		draw_text(ice->pwd, sizeof(ice->pwd), &in->random);
}

/* --- The terminal's SDP ----------------------------------------------------------------------- */

static void set_text(char out[LEG_ICE_TEXT], struct str text)
{
	memset(out, 0, LEG_ICE_TEXT);
	memcpy(out, text.s, text.len < LEG_ICE_TEXT ? text.len : LEG_ICE_TEXT - 1);
}

uint32_t neg_ice_filter(struct ice_candidate *c, uint32_t n, const struct reach *r)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (reach_may_check(r, &c[i].addr))
			c[kept++] = c[i];
	return kept;
}

/* True: it uses ICE. *restarted: its credentials are others than before (RFC 8839 4.4.1.1.1). */
static bool read_said(struct leg_ice *ice, uint32_t i, const struct neg_in *in, bool *restarted)
{
	struct sdp_ice *said = pool_alloc(in->p, sizeof(*said));

	*restarted = false;
	ice->mismatch = false;
	ice->candidate = NULL;
	ice->candidates = 0;
	if (!said || in->sdp->media[i].port == 0)
		return false;
	sdp_ice_read(said, in->sdp, i);
	if (!sdp_ice_used(said))
		return false;
	*restarted = ice->remote_ufrag[0] &&
		sdp_ice_restarted(str_from(ice->remote_ufrag), str_from(ice->remote_pwd),
			said->ufrag, said->pwd);
	set_text(ice->remote_ufrag, said->ufrag);
	set_text(ice->remote_pwd, said->pwd);
	ice->remote_lite = said->lite;
	ice->candidate = said->candidate;
	ice->candidates = neg_ice_filter(said->candidate, said->count, in->reach);
	ice->last = !said->trickle || said->end_of_candidates;
	ice->mismatch = said->mismatch;
	return true;
}

/* The parameters in force stay until the answer, because the offer may be refused. */
static void delay(struct leg_ice *ice, const struct leg_ice *before)
{
	ice->next_lite = ice->remote_lite;
	memcpy(ice->next_ufrag, ice->remote_ufrag, sizeof(ice->next_ufrag));
	memcpy(ice->next_pwd, ice->remote_pwd, sizeof(ice->next_pwd));
	ice->remote_lite = before->remote_lite;
	memcpy(ice->remote_ufrag, before->remote_ufrag, sizeof(ice->remote_ufrag));
	memcpy(ice->remote_pwd, before->remote_pwd, sizeof(ice->remote_pwd));
	ice->of_next = true;
	ice->last = before->last;
}

/* If the script names the address for the terminal, it is the only candidate. */
static bool is_wide(const struct neg_in *in)
{
	return !in->r->media_address.len;
}

void neg_ice_said(struct leg *l, uint32_t i, const struct neg_in *in)
{
	struct leg_ice before = l->ice;
	bool restarted;

	if (!leg_has_ice(l))
		l->ice.wide = true; /* the answer may clear it */

	l->ice.said = read_said(&l->ice, i, in, &restarted);
	/* ICE that is in force works, so it stays. ICE of WebRTC stays, too: such a terminal has no
	 * media without it (RFC 8835 3.4), and scripts do change c= of its offers. */
	if (l->ice.on || in->sdp->media[i].dtls)
		l->ice.mismatch = false;
	if (l->ice.mismatch) {
		l->ice.said = false;
		l->ice.candidates = 0;
	}
	l->ice.restart = l->ice.said && restarted;
	if (l->ice.on && l->ice.restart)
		delay(&l->ice, &before);
	secmem_wipe(&before, sizeof(before));
	if (in->r->ice_lite)
		l->ice.lite_back = in->r->ice_lite & NG_ICE_LITE_BACKWARDS;
}

/* --- Offers ----------------------------------------------------------------------------------- */

bool neg_ice_offer(const struct leg *from, struct leg *to, struct neg_in *in)
{
	struct leg_ice *ice = &to->ice;
	bool force = in->r->ice == NG_ICE_FORCE || in->r->ice == NG_ICE_FORCE_RELAY;
	bool was = leg_has_ice(to);

	ice->asked = in->sessions && in->r->ice != NG_ICE_REMOVE &&
		(force || (from && from->ice.said) || ice->on);
	ice->told = ice->asked;
	if (!ice->asked || ice->on)
		return true;
	ice->wide = was ? ice->wide : is_wide(in);
	ice->lite = in->r->ice_lite & NG_ICE_LITE_FORWARD;
	ice->controlling = true;
	memset(ice->remote_ufrag, 0, sizeof(ice->remote_ufrag));
	secmem_wipe(ice->remote_pwd, sizeof(ice->remote_pwd));
	return draw(ice, in);
}

void neg_ice_answered(struct leg *l, uint32_t i, const struct neg_in *in)
{
	bool restarted = false, uses = l->ice.told && read_said(&l->ice, i, in, &restarted);

	/* Our offer restarted nothing, so these credentials are another terminal's. */
	if (l->ice.on && uses && restarted) {
		l->ice.peer++;
		memset(l->ice.prev_ufrag, 0, sizeof(l->ice.prev_ufrag));
		secmem_wipe(l->ice.prev_pwd, sizeof(l->ice.prev_pwd));
		memset(l->ice.pair, 0, sizeof(l->ice.pair));
	}
	l->ice.on = l->ice.asked = uses;
}

/* --- Answers ---------------------------------------------------------------------------------- */

/* The delayed credentials of a restart come into force. The session kept the offer's candidates.
 * The addresses in SDP are added, in case that was another life's session. */
static void restart(struct leg *l, const struct neg_in *in)
{
	const struct endpoint *to[2] = {&l->said.remote, &l->said.rtcp_remote};
	struct leg_ice *ice = &l->ice;
	struct ice_candidate *c = pool_alloc(in->p, 2 * sizeof(*c));

	memcpy(ice->prev_ufrag, ice->ufrag, sizeof(ice->prev_ufrag));
	memcpy(ice->prev_pwd, ice->pwd, sizeof(ice->prev_pwd));
	ice->remote_lite = ice->next_lite;
	memcpy(ice->remote_ufrag, ice->next_ufrag, sizeof(ice->remote_ufrag));
	memcpy(ice->remote_pwd, ice->next_pwd, sizeof(ice->remote_pwd));
	secmem_wipe(ice->next_pwd, sizeof(ice->next_pwd));
	ice->candidate = c;
	ice->candidates = 0;
	for (uint8_t k = 0; c && k < 2; k++)
		ice->candidates += leg_candidate(&c[ice->candidates], to[k], k);
	ice->candidates = c ? neg_ice_filter(c, ice->candidates, in->reach) : 0;
}

static bool may_answer(const struct neg_in *in)
{
	return in->sessions && in->r->ice != NG_ICE_REMOVE && !ng_flag(in->r, NG_FLAG_REJECT_ICE);
}

bool neg_ice_answer(struct leg *l, struct neg_in *in)
{
	struct leg_ice *ice = &l->ice;
	bool was = ice->on;

	ice->on = ice->said && may_answer(in);
	ice->said = ice->on;
	if (!ice->on || (was && !ice->restart))
		return true;
	ice->wide = ice->wide && (was || is_wide(in));
	if (!was) {
		ice->controlling = false;
		ice->lite = ice->lite_back || in->r->ice_lite & NG_ICE_LITE_FORWARD;
	}
	if (was)
		restart(l, in);
	ice->restart = false;
	return draw(ice, in);
}

void neg_ice_remotes(struct leg *l)
{
	if (!l->ice.on) {
		memset(l->ice.pair, 0, sizeof(l->ice.pair));
		memset(l->ice.named, 0, sizeof(l->ice.named));
		return;
	}
	l->ice.named[0] = l->remote;
	memset(&l->ice.named[1], 0, sizeof(l->ice.named[1]));
	if (!l->mux)
		l->ice.named[1] = l->rtcp_remote;
	l->remote = l->ice.pair[0];
	l->rtcp_remote = l->ice.pair[!l->mux];
}

/* --- Our SDP ---------------------------------------------------------------------------------- */

/* Writes host candidates on all addresses of the leg by priority, each with one or two components.
 * Returns their number. */
static uint32_t candidates(struct ice_candidate out[SESSION_PORTS], const struct leg *l,
	uint32_t components, const struct endpoint *addr, const struct neg_in *in)
{
	struct endpoint local[LEG_LOCALS];
	uint8_t foundation[LEG_LOCALS];
	uint16_t preference[LEG_LOCALS];
	const struct relay_port *port;
	uint32_t n = 0;

	for (uint32_t i = 0; leg_port_at(l, i); i++)
		local[n++] = i ? in->locals[leg_port_at(l, i)->rtp.addr].advertised : *addr;
	ice_prefer(local, n, preference, foundation);
	for (uint32_t i = 0; (port = leg_port_at(l, i)); i++)
		for (uint8_t k = 0; k < components; k++) {
			struct ice_candidate *c = &out[components * i + k];

			*c = (struct ice_candidate){.addr = local[i],
				.priority = ice_candidate_priority(ICE_HOST, preference[i], k + 1),
				.foundation = {(char)('0' + foundation[i])},
				.foundation_len = 1,
				.component = k + 1,
				.type = ICE_HOST};
			c->addr.port = k ? port->rtcp.port : port->rtp.port;
		}
	return components * n;
}

/* A controlling agent's later offer names the terminal's side of the pairs in use, in case that it
 * overtakes the nomination (RFC 8839 4.4.1.2.2). */
static void write_remotes(struct sdp_ice_write *w, const struct leg *l)
{
	if (!l->ice.on || !l->ice.controlling)
		return;
	w->remote[0] = l->ice.pair[0];
	if (!l->mux)
		w->remote[1] = l->ice.pair[1];
}

struct str neg_ice_lines(
	const struct leg *l, bool is_answer, const struct endpoint *addr, const struct neg_in *in)
{
	bool both = is_answer ? !l->mux : !(l->asked.mux && in->r->rtcp_mux & NG_RTCP_MUX_REQUIRE);
	struct ice_candidate c[SESSION_PORTS];
	struct sdp_ice_write w = {.ufrag = {l->ice.ufrag, sizeof(l->ice.ufrag)},
		.pwd = {l->ice.pwd, sizeof(l->ice.pwd)},
		.candidate = c,
		.trickle = ng_flag(in->r, NG_FLAG_TRICKLE_ICE),
		.end_of_candidates = true,
		.eol = in->sdp->crlf ? "\r\n" : "\n"};
	struct str out;
	struct sbuf b;

	if (is_answer && l->ice.mismatch && may_answer(in))
		return in->sdp->crlf ? STR("a=ice-mismatch\r\n") : STR("a=ice-mismatch\n");
	if (!(is_answer ? l->ice.on : l->ice.asked))
		return STR("");
	w.count = candidates(c, l, both ? 2 : 1, addr, in);
	if (!is_answer)
		write_remotes(&w, l);
	sbuf_init(&b, 0);
	sdp_ice_write(&b, &w);
	out = b.err ? STR_NONE : pool_strdup(in->p, sbuf_view(&b));
	sbuf_fini(&b);
	return out;
}
