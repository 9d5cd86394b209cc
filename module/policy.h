/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The module's own words in a flag string, the security policy they select, and the exceptions for
 * emergency calls. */
#ifndef MODULE_POLICY_H
#define MODULE_POLICY_H

#include "wire.h"

#define POLICY_LIST 1024u /* more than the sum of all names */

struct policy {
	uint32_t require_in, require_out; /* suites, a bit per row of the table; 0 = no wish */
	bool downgrade;                   /* accept instead of refusing */
	bool emergency;
};

struct words {
	struct policy policy;
	char via[8];  /* "1", "2", "auto", "none" */
	uint32_t set; /* of nodes */
	bool retry;   /* request RTP; set by call_retry(), not by a word */
	bool nowait;  /* do not wait for the reply */
	bool bad;     /* a word of ours with an invalid value */
	size_t flags_len;
};

/* Removes our words from a flag string, and writes the rest to out (size more than flags.len). */
void words_split(struct words *w, char *out, struct text flags);

/* True if at least one suite of a comma-separated list is in the set. */
bool policy_has(uint32_t set, const char *list);
/* True if the list is not empty and all of it is in the set. */
bool policy_only(uint32_t set, const char *list);
/* True if each media that carries RTP meets the policy: names a suite of the set, or all: names no
 * other. Else failing has the suites of the first that does not. */
bool policy_body(
	uint32_t set, struct text sdp, bool all, bool opportunistic, char failing[POLICY_LIST]);
/* " SDES-only-..." for each suite of the set. */
void policy_flags(char *out, size_t size, uint32_t set);
/* Removes limits of suites (of SDES: only-, no-, require:, nonew) from flags, in place. With
 * transport set, also removes transports and demands for one keying. */
size_t policy_loosen(char *flags, size_t len, bool transport);
/* Whether this fall-back is in the list of allowed ones, "suites,rtp". */
bool policy_allows(const char *list, const char *what);

/* urn:service:sos and its children (RFC 5031). */
bool policy_sos(struct text uri);

#endif
