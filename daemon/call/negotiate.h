/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offer and answer (RFC 3264, RFC 4568, RFC 5761), as pure functions: they look at nothing but their arguments and change
 * nothing but the copy of the call they were given. */
#ifndef CALL_NEGOTIATE_H
#define CALL_NEGOTIATE_H

#include "call/model.h"

struct calls;
struct crypto_refused;

/* Fresh key material of one of our keys. */
#define NEG_RANDOM_PER_KEY (SUITE_MAX_KEY_LEN + SUITE_MAX_SALT_LEN)
/* What one offer or answer can need at most. */
#define NEG_RANDOM_LEN(media) ((size_t)(media)*SUITE_COUNT * NEG_RANDOM_PER_KEY)

struct neg_in {
	const struct call_policy *policy;
	const struct relay_local *locals;
	uint32_t locals_n;
	const struct reach *reach;
	const struct ng_request *r;
	const struct sdp *sdp;
	uint8_t *random; /* each byte is used once and wiped */
	size_t random_len;
	struct keystore *keys; /* memory for new legs */
	struct pool *p;
	const struct call *call; /* the copy that is negotiated on */
	uint8_t other; /* side: the other party of this exchange; SIDE_NONE: none, or not known yet */
};

struct plan {
	const char *error; /* NULL: next is what is to be applied */
	struct str detail;
	struct str warning;
	struct str notice; /* for the log, too: what became less secure */
	struct str kept;   /* flags that were not applied to an established side */
	uint32_t weaker_by_order, weaker_by_terminal; /* legs that went from SRTP to RTP */
	bool too_many;                                /* the warning says so */
	bool offers;                                  /* some m-line is offered on */
	/* Error-reason of the first m-line that was rejected for its crypto lines; all such m-lines. */
	const char *unusable;
	struct str unusable_detail;
	uint8_t from, to; /* sides: who said it, who is told */
	/* What is told, as far as ports don't matter */
	struct plan_media {
		bool keep, reject, omit;
		bool both;            /* twice.c: its m-line in the other profile is offered too */
		struct str direction; /* s = NULL: as it was */
		enum sdp_proto proto;
		bool mux;
		struct sdes line[SUITE_COUNT]; /* a=crypto lines to write */
		uint32_t lines;
		const struct str *pass; /* instead of them, if any: the other side's, as they are */
		uint32_t passes;
	} * media; /* [sdp.media_count], in the pool */
};

/* The plan is how next, a copy of the call so far, has to become. */
void negotiate_offer(struct plan *out, struct call *next, struct neg_in *in);
void negotiate_answer(struct plan *out, struct call *next, struct neg_in *in);

/* Adds to the warning, separated by "; ". */
void plan_warn(struct plan *plan, struct pool *p, struct str text);

/* Adds to the notice, and to the warning. */
void plan_note(struct plan *plan, struct pool *p, struct str text);

/* The session description for the side plan.to, once all ports are taken. s = NULL without memory. */
struct str edit_write(
	struct plan *plan, struct call *next, const struct neg_in *in, bool is_answer);

/* The mark of loop-protect (loop.c): a place for it in a=xcipher, of as many digits. */
#define LOOP_NO_MARK "00000000000000000000000000000000"
/* A copy of an SDP of ours, with its mark in that place. s = NULL without memory. */
struct str loop_mark(
	struct pool *p, const struct call_policy *policy, struct str call_id, struct str body);
/* Whether the SDP has our mark, and SDP and Call-ID are those that it was made for. */
bool loop_is_ours(const struct call_policy *policy, struct str call_id, const struct sdp *sdp);

/* Checks the addresses of a request and its SDP (reach_sdp.c). NULL, or the error-reason; *detail
 * then has the line and the cause. */
const char *reach_sdp(struct calls *c, struct pool *p, const struct ng_request *r,
	const struct sdp *sdp, struct str *detail);
/* The address that media are sent to: the signalled one, or received-from with the flag
 * SIP-source-address. */
struct endpoint neg_trusted(const struct ng_request *r, const struct endpoint *signalled);

/* Takes the address that the request names for the call's end (told.c), with a warning where it will not be used. */
void told_request(struct plan *plan, struct call *c, const struct neg_in *in);

/* --- One-way media: publish, subscribe (listen.c) --------------------------------------------------------------- */

/* An SDP of all that the request wants to hear of the call, as the sources described it; NULL and *error if there is nothing. */
struct str listen_body(
	struct pool *p, const struct call *c, const struct ng_request *r, const char **error);
void negotiate_publish(struct plan *out, struct call *next, struct neg_in *in);
void negotiate_listen(struct plan *out, struct call *next, struct neg_in *in);
void negotiate_listen_answer(struct plan *out, struct call *next, struct neg_in *in);
/* What the reply says of whom and what it hears. */
void listen_reply(struct pool *p, const struct call *c, const struct ng_request *r,
	uint8_t listener, struct ngval *dict);
/* Keeps what listeners need of it; without memory there is nothing to hear. */
void listen_remember(struct side *s, const struct sdp *sdp);

/* --- Words about the call or a side as a whole (neg_flags.c) ----------------------------------------------------- */

void neg_flags(struct call *c, struct side *from, const struct neg_in *in);
/* Warns of what is asked for and not there. */
void neg_unsupported(struct plan *plan, const struct neg_in *in);
/* The profile of the answer to this leg: that of its offer, with or without feedback as the request says.
 * m: of the answerer. */
enum sdp_proto neg_answer_proto(struct plan *plan, const struct leg *to, const struct sdp_media *m,
	uint32_t i, const struct neg_in *in);
/* Whose media go back to them from now on: an offer decides, and an answer may. */
void neg_echo(struct plan *plan, struct side *from, struct side *to, const struct neg_in *in,
	bool is_answer);

/* --- Steps of an exchange that all kinds share (negotiate.c, neg_offer.c, neg_answer.c) ------------------------- */

bool plan_init(struct plan *plan, struct neg_in *in);
void plan_fail(struct plan *plan, const char *reason, struct str detail);
struct str plan_media_name(struct pool *p, uint32_t i, const char *what);
void plan_lines(struct plan_media *pm, struct leg *l);
uint8_t neg_local(struct plan *plan, const struct neg_in *in, struct str name, int family);
int neg_family(const struct sdp *s);
void neg_said(struct leg *l, const struct sdp_media *m, const struct neg_in *in);
void neg_said_at(struct leg_said *said, const struct sdp_media *m, const struct neg_in *in);
bool neg_offered_crypto(
	struct plan *plan, struct leg *l, const struct sdp_media *m, uint32_t i, struct neg_in *in);
void neg_answerer_crypto(
	struct plan *plan, struct leg *l, const struct sdp_media *m, uint32_t i, struct neg_in *in);
void neg_offerer_crypto(
	struct plan *plan, struct leg *l, enum srtp_suite_id prefer, uint32_t i, struct neg_in *in);
void neg_remotes(struct leg *l, const struct sdp_media *m, bool mux, const struct neg_in *in);
/* Old-style hold names no address: what was known stays. */
void neg_set_remote(
	struct leg *l, const struct endpoint *rtp, const struct endpoint *rtcp, bool mux);
void neg_set_kind(struct leg *l, const struct sdp_media *m);
/* Whether the m-line is not of the leg's kind, "audio" for instance. A leg without a kind takes any. */
bool neg_other_kind(const struct leg *l, const struct sdp_media *m);
/* Warns that m-line i is refused for that. */
void neg_warn_kind(struct plan *plan, struct pool *p, const struct leg *l,
	const struct sdp_media *m, uint32_t i);
/* Where the line stands that was refused, and why. i: the media. */
struct str neg_refused_line(struct pool *p, uint32_t i, const struct crypto_refused *r);
/* The suites that whoever said this may speak, by the script's minimum: bit per suite. */
uint32_t neg_required(const struct ng_request *r);
void neg_into_force(
	struct leg *l, enum sdp_proto proto, enum sdp_dir dir, const struct sdp_media *m);
/* Payload types of telephone events (RFC 4733), to those that are there. */
void neg_add_events(uint64_t events[2], const struct sdp_media *m);
/* MEDIA_QUIET_*, and NEG_QUIET_ONLY. */
#define NEG_QUIET_ONLY 4 /* it has no other codec; no MEDIA_QUIET_* */
uint8_t neg_quiet(const struct sdp_media *m);
void neg_close(struct leg *l, bool for_good);
/* Whether this m-line would be one more than the policy allows for a party; then adds a warning. */
bool neg_too_many(struct plan *plan, const struct side *from, uint32_t media,
	const struct sdp_media *m, const struct neg_in *in);

/* --- Media that a party is not told of (hide.c) ------------------------------------------------------------------ */

/* Whether the request wants media of this kind not to be offered on. */
bool hide_wanted(const struct ng_request *r, const struct sdp_media *m);
/* The offer has this m-line: is the party told of it, and from now on? fresh: it never heard of an m-line with this number. */
void hide_decide(struct side *to, uint32_t media, bool wanted, bool fresh);
/* Adds m-lines of the offer that the answer lacks, as rejected (RFC 3264 6: the numbers are the same). An m-line of another kind
 * than the offer's becomes a rejected one of the offer's kind, with a warning (RFC 3264 6.1). to: the offerer. NULL, or the
 * error-reason. */
const char *hide_fill(struct plan *plan, struct neg_in *in, const struct side *to);
static inline bool hide_from(const struct side *s, uint32_t media)
{
	return s->hidden >> media & 1;
}
/* Some m-line behind this one has its place with the party already. */
bool hide_told_behind(const struct side *s, uint32_t media);
/* What from said, in our numbers: what it was not told of is there as rejected, described as other said it; what it said twice is
 * there once. NULL, or the error-reason. */
const char *hide_number(
	struct neg_in *in, struct side *from, const struct side *other, bool is_offer);

/* --- Media that a party knows as two m-lines (twice.c) ----------------------------------------------------------- */

/* How many of the m-lines that from said, of those that are left, are this media of ours: 1 or 2. */
uint32_t twice_fold(struct sdp_media *out, struct neg_in *in, struct side *from, uint32_t media,
	const struct sdp_media *said, uint32_t left, bool is_offer);
/* Whether it is offered in RTP and in SRTP, in an offer of so many media. */
bool twice_offer(struct plan *plan, struct side *to, uint32_t media, uint32_t count,
	const struct neg_in *in);
/* What is told of so many media is not more than an SDP may have. NULL, or the error-reason. */
const char *twice_fits(const struct side *to, uint32_t count);
/* The second m-line of such a media, beside e. False without memory. */
bool twice_edit(struct sdp_media_edit *e, const struct side *to, uint32_t media,
	const struct plan_media *pm, const struct neg_in *in);

/* --- What a leg speaks stays (neg_stay.c) ------------------------------------------------------------------------ */

/* Replaces in->r by a copy without the flags that were meant for the other side: from said the SDP,
 * to is told. Keeps the flags that are in force for to. False without memory. */
bool stay_request(struct plan *plan, const struct side *from, struct side *to, struct neg_in *in,
	bool is_answer);
bool leg_is_encrypted(const struct leg *l);
/* The leg of to that shows what l is to speak: l if it was in force before. For a new m-line
 * another one, if its sender offers the m-line in the profile of its others. NULL: none. */
const struct leg *stay_model(const struct side *from, const struct side *to, const struct leg *l,
	enum sdp_proto offered);
/* Whether an offer in this profile has crypto lines (RFC 8643), because SRTP is in force. */
bool stay_opportunistic(const struct leg *model, enum sdp_proto proto, const struct neg_in *in);
/* Notes it if a leg, encrypted before with this suite, no longer is. */
void stay_look(struct plan *plan, const struct leg *l, uint8_t was, bool by_order, uint32_t i,
	struct neg_in *in);

/* --- Crypto lines (neg_crypto.c) -------------------------------------------------------------------------------- */

struct crypto_refused {  /* the first a=crypto line that was left out */
	uint32_t line;   /* from 1, 0: none was */
	const char *why; /* constant */
};

/* Bit of the suite, and NG_SDES_UN*, that a leg speaks by now: what a script once allowed stays good for re-INVITEs. */
uint32_t crypto_in_force(const struct leg *leg);
uint32_t crypto_params_in_force(const struct leg *leg);
struct crypto_rules {    /* what a line of a terminal must keep to */
	uint32_t suites; /* bit per suite */
	uint32_t params; /* NG_SDES_UN*, see sdes_policy */
	const struct neg_in *in;
};
/* Which of a media's a=crypto lines we could accept, in the terminal's order. */
uint32_t crypto_lines(struct sdes out[LEG_MAX_LINES], struct sdes_bag *bag,
	const struct sdp_media *m, const struct crypto_rules *rules,
	struct crypto_refused *refused);
/* neg_reflect.c: NULL, or the reason why the terminal must not send under the keys of this line.
 * more: the line's further keys. */
const char *reflect_refusal(
	const struct neg_in *in, const struct sdes *line, const struct srtp_master *more);
/* The line of the answer that fits an offer of ours, and our key for it; false if none does. */
bool crypto_accepted(struct sdes *out, struct sdes_bag *bag, struct our_key **ours, struct leg *leg,
	const struct sdp_media *m, const struct neg_in *in, struct crypto_refused *refused);
/* Decide on the lines for an offer to leg; asked.suite[] tells which. Suites of the offerer go first. */
void crypto_offer(struct leg *leg, const struct leg_said *offerer, struct neg_in *in);
/* Our key for this line of the terminal's offer: the one we had, or a fresh one. NULL if random bytes ran out. */
struct our_key *crypto_answer(struct leg *leg, const struct sdes *line, struct neg_in *in);
/* Which line of the offer to answer: what is in force; else prefer, the suite that the other side accepted; else the first in the
 * policy's order, which is the strongest. Flags of the answer, only- and no-, choose among the lines (as long as they leave
 * any: flags meant for the other side must not end the call). NULL if there is none. */
const struct sdes *crypto_choose(
	const struct leg *leg, enum srtp_suite_id prefer, const struct neg_in *in);
struct our_key *crypto_ours(struct leg *leg, enum srtp_suite_id suite);
/* Put into force. NULL: plain. */
void crypto_set_rx(struct leg *leg, const struct sdes *s, const struct sdes_bag *bag);
void crypto_set_tx(struct leg *leg, struct our_key *k);

/* --- Passing through (neg_pass.c) ------------------------------------------------------------------------------- */

/* Whether the offer is handed on as it is; then the lines are in the plan. paired: these two spoke to each other so far. */
bool pass_offer(struct plan *plan, const struct leg *from, struct leg *to, bool paired,
	const struct sdp_media *m, uint32_t i, const struct neg_in *in);
/* The answer of from to such an offer of to's comes into force. */
void pass_answer(struct plan *plan, struct leg *from, struct leg *to, bool paired,
	const struct sdp_media *m, uint32_t i, struct neg_in *in);

/* --- Media that is not RTP (neg_raw.c) --------------------------------------------------------------------------- */

/* Each side sees the other's m-line as it is. */
bool raw_passes(const struct sdp_media *m);
/* Both sides get port 0, with a warning: an unknown transport, or voice, video or text that is neither RTP nor SRTP. */
bool raw_rejects(struct plan *plan, const struct sdp_media *m, uint32_t i, const struct neg_in *in);
/* Offer and answer of datagrams. */
void raw_offer(
	struct leg *from, struct leg *to, const struct sdp_media *m, const struct neg_in *in);
void raw_answer(struct plan *plan, struct side *from, struct side *to, const struct sdp_media *m,
	uint32_t i, const struct neg_in *in);
/* Whether the answer's transport is the offer's, or RTP where RTP was offered (RFC 3264 6.1); else fails the plan, for no SDP for
 * the offerer would be true. */
bool raw_fits(struct plan *plan, const struct leg *offerer, const struct sdp_media *m, uint32_t i,
	const struct neg_in *in);

#endif
