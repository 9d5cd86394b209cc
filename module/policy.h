/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The module's own words in a flag string, the security policy they ask for, and what is different
 * for emergency calls. */
#ifndef MODULE_POLICY_H
#define MODULE_POLICY_H

#include "wire.h"

#define POLICY_LIST 1024u /* longer than all names together */

struct policy {
	uint32_t require_in, require_out; /* suites, a bit per row of the table; 0 = no wish */
	bool downgrade;                   /* instead of refusing */
	bool emergency;
};

struct words {
	struct policy policy;
	char via[8];  /* "1", "2", "auto", "none" */
	uint32_t set; /* of nodes */
	bool retry;   /* in RTP; by call_retry(), not by a word */
	bool nowait;  /* do not wait for the reply */
	bool bad;     /* a word of ours with a value that means nothing */
	size_t flags_len;
};

/* Removes our words from a flag string, and writes the rest to out (size more than flags.len). */
void words_split(struct words *w, char *out, struct text flags);

/* True if at least one suite of a comma-separated list is in the set. */
bool policy_has(uint32_t set, const char *list);
/* True if the list is not empty and all of it is in the set. */
bool policy_only(uint32_t set, const char *list);
/* True if each media of a body that carries RTP can meet the demand: names a suite of the set, or
 * all: no other one. Else failing has the suites of the first that cannot. */
bool policy_body(
	uint32_t set, struct text sdp, bool all, bool opportunistic, char failing[POLICY_LIST]);
/* " SDES-only-..." for each suite of the set. */
void policy_flags(char *out, size_t size, uint32_t set);
/* Takes what limits suites (of SDES: only-, no-, require:, nonew) out of flags, in place; and what
 * names a transport or demands one keying, if transport is set. */
size_t policy_loosen(char *flags, size_t len, bool transport);
/* Is this fall-back among the allowed ones, "suites,rtp"? */
bool policy_allows(const char *list, const char *what);

/* urn:service:sos and its children (RFC 5031). */
bool policy_sos(struct text uri);

#endif
