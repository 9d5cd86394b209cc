/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside proto/ only: what ng.c, ng_keys.c, ng_words.c, ng_filter.c and ng_flags.c share while one request is read. */
#ifndef PROTO_NG_INT_H
#define PROTO_NG_INT_H

#include "proto/ng.h"

#define NG_NOTES_MAX   8u
#define NG_UNKNOWN_MAX 16u /* unknown words named in one warning; the rest is only counted */
#define NG_WORDS_MAX \
	1024u /* keys, flags and values of one message that are looked up; beyond, they are unknown */

struct ng_parser {
	struct ng_request *r;
	struct pool *p;
	bool secure, feedback, tls;           /* bits that transport words add up to */
	uint32_t directions;                  /* how many of r->direction are set */
	const struct ng_templates *templates; /* or NULL */
	bool in_template;                     /* one does not refer to another */
	bool raw; /* what is read comes from a raw string, where a value cannot have blanks */
	struct str unknown[NG_UNKNOWN_MAX];
	uint32_t unknown_count;
	uint32_t words;  /* looked up so far */
	bool overfull;   /* there were more */
	struct str note; /* what is known and not done as the script may think */
	uint32_t notes;
};

/* One value of a key with several values, "off" of SDES=off. False if nobody knows it. */
typedef bool ng_value_fn(struct ng_parser *x, struct str value);

/* ng_words.c */
ng_value_fn ng_set_sdes, ng_set_osrtp, ng_set_rtcp_mux, ng_set_replace, ng_set_ice, ng_set_dtls;
ng_value_fn ng_set_learning, ng_set_transport, ng_set_family, ng_set_direction;
ng_value_fn ng_set_all, ng_set_traffic, ng_set_echo, ng_set_media_remove, ng_set_ice_lite;
ng_value_fn ng_set_dtls_fingerprint, ng_set_generate_rtcp, ng_set_dtmf_security, ng_set_player,
	ng_set_alias_key;
/* A word that stands for itself: flags, transport words, what a relay may ignore. */
bool ng_set_word(struct ng_parser *x, struct str word);

/* ng_filter.c: keys that are trees, and flags that say the same; false if it is no such flag, or a wrong one. */
void ng_set_codec_tree(struct ng_parser *x, const struct ngval *v);
void ng_set_attr_tree(struct ng_parser *x, const struct ngval *v);
bool ng_set_filter_word(struct ng_parser *x, struct str word);
/* The attribute goes, wherever it stands. */
void ng_strip_attr(struct ng_parser *x, struct str attr);
/* ng_keys.c: all keys of the message, a dictionary, into the request. False without memory. */
bool ng_set_message(struct ng_parser *x, const struct ngval *msg);
/* ng_keys.c: goes into the reply's warning. */
void ng_unknown(struct ng_parser *x, struct str word);
/* ng_keys.c: to be asked before a word is looked up: there were enough of them. */
bool ng_too_many(struct ng_parser *x);
/* ng_words.c: "word: why", likewise, of what is known and not done; the first few. */
void ng_note(struct ng_parser *x, struct str word, const char *why);

/* A key that is known and changes nothing. */
bool ng_set_ignored_key(struct ng_parser *x, struct str key);

/* ng_flags.c: the raw string of "rtpp-flags" as a list: a word is a string without key, k=v one
 * with key, [a b] a list; within a list too, k=v has a key. NULL without memory. */
struct ngval *ng_flags_split(struct pool *p, struct str text);

#endif
