/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of MIKEY's row. mikey_row.c has the operations and reads offers,
 * mikey_row_said.c reads what terminals say and answers their messages, mikey_row_offer.c writes
 * offers, mikey_row_answer.c reads and writes answers. */
#ifndef KEYING_MIKEY_ROW_INT_H
#define KEYING_MIKEY_ROW_INT_H

#include "keying/mikey_host.h"
#include "keying/rows.h"
#include "proto/sdp_keymgmt.h"

/* Values of keying_mikey.offered and asked that name no exchange. */
#define MIKEY_KEPT 1u /* offered: the message in force, whose exchange was forgotten */
#define MIKEY_GONE 2u /* the keys were deleted, and must not return */
#define MIKEY_NEXT 3u /* asked: mikey_row_end_offer() will make the message */

/* --- mikey_row.c ------------------------------------------------------------------------------ */

/* Notes a key of ours before its first use, so that indexes continue when it returns. A place is
 * free again when its exchange can no longer be answered. False: no place is free. */
bool mikey_row_note_key(struct keying_mikey *s, const struct srtp_master *key, uint64_t of);
/* NULL, or why a leg must not have these keys, which its terminal may have chosen. The other
 * terminal's keys are compared if the terminal is the sender of the SDP. */
const char *mikey_row_unfit(const struct keying_state *s, const struct mikey_medium *m,
	bool is_sender, const struct keying_in *in);

/* --- mikey_row_said.c ------------------------------------------------------------------------- */

struct said {
	struct sdp_keymgmt_lines lines;
	struct str text;    /* the line's base64 */
	struct str message; /* in the request's pool */
};

/* False: no line of MIKEY, or media that it has no keys for. A line that is no base64 leaves the
 * message empty. */
bool mikey_row_said(struct said *out, const struct sdp_media *m, const struct keying_in *in);
/* Hash of an SDP line, for is_same_offer() and for saved calls. */
uint64_t mikey_row_hash(struct str text);
/* The number of a message's exchange. The same message in the same dialog is the same offer:
 * repeated, forked, or another of its m-lines. In another dialog it is a replay, and in the same
 * one after the call has ended. 0: no memory. */
uint64_t mikey_row_number(struct str message, const struct keying_in *in);
/* The response to a message, made now or before. NULL: see *why. */
struct mikey_talk *mikey_row_talk(const struct said *said, uint32_t suites, uint64_t id,
	const struct keying_in *in, struct keying_error *why);
struct mikey_env mikey_row_env(const struct mikey_host *h);
struct str mikey_row_failure(struct pool *p, enum mikey_failure f, const struct mikey_run *run);
struct keying_error mikey_row_error(struct str detail);
/* Why an offer whose message fails is refused. before: what other keyings said. In an emergency
 * call another keying of the offer may serve. */
struct keying_error mikey_row_refuses(
	const struct keying_error *before, struct str detail, const struct keying_in *in);
/* Our suites among the allowed ones, in the order of --sdes-offer; suites that it does not name
 * follow. Returns their number. */
uint8_t mikey_row_suites(
	uint8_t out[MIKEY_SUITES_MAX], uint32_t allowed, const struct keying_in *in);

/* --- mikey_row_offer.c, mikey_row_answer.c: operations of the row ----------------------------- */

enum keying_result mikey_row_write_offer(struct keying_offer *o, const struct keying_in *in);
void mikey_row_end_offer(
	struct keying_written *w, uint32_t n, bool whole, const struct keying_in *in);
enum keying_result mikey_row_read_answer(struct keying_answer *a, const struct keying_in *in);
enum keying_result mikey_row_write_answer(struct keying_answer *a, const struct keying_in *in);

#endif
