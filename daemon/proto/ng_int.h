/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to proto/: shared by ng.c, ng_keys.c, ng_values.c, ng_filter.c and ng_flags.c while a
 * request is read. */
#ifndef PROTO_NG_INT_H
#define PROTO_NG_INT_H

#include "proto/ng.h"

#define NG_NOTES_MAX   8u
#define NG_UNKNOWN_MAX 16u /* unknown words that a warning names; further ones are only counted */
#define NG_WORDS_MAX \
	1024u /* keys, flags and values looked up per message; further ones count as unknown */

struct ng_parser {
	struct ng_request *r;
	struct pool *p;
	bool secure, feedback, tls;           /* sum of the bits of transport words */
	uint32_t directions;                  /* number of entries set in r->direction */
	const struct ng_templates *templates; /* or NULL */
	bool in_template;                     /* templates do not refer to templates */
	bool raw; /* the source is a raw string, where values have no blanks */
	struct str unknown[NG_UNKNOWN_MAX];
	uint32_t unknown_count;
	uint32_t words;  /* number of look-ups */
	bool overfull;   /* the limit was exceeded */
	struct str note; /* known words whose effect may differ from what the script expects */
	uint32_t notes;
};

/* One value of a key with several values: "off" of SDES=off. False if it is unknown. */
typedef bool ng_value_fn(struct ng_parser *x, struct str value);

/* A word of a request, and the bit or enum value that it stands for. */
struct word_bit {
	struct str name;
	uint32_t bit;
};

/* clang-format off */
#define WORD(literal, bit) {{literal, sizeof(literal) - 1}, bit}
/* clang-format on */
/* ng_values.c: the entry of a table with this name in any spelling; NULL: none. */
const struct word_bit *ng_word_find(const struct word_bit *t, size_t n, struct str word);
#define FIND(table, word) ng_word_find(table, ARRAY_LEN(table), word)
/* Adds the bits of that entry. False: there is none. */
bool ng_word_add(uint32_t *bits, const struct word_bit *t, size_t n, struct str word);
#define ADD_BITS(field, table, word) ng_word_add(&(field), table, ARRAY_LEN(table), word)
/* If a starts with prefix in any spelling, the rest of it; else s = NULL. */
struct str ng_rest_after(struct str a, struct str prefix);

/* ng_values.c */
ng_value_fn ng_set_osrtp, ng_set_rtcp_mux, ng_set_bundle, ng_set_replace, ng_set_ice, ng_set_dtls,
	ng_set_mikey;
ng_value_fn ng_set_learning, ng_set_transport, ng_set_family, ng_set_direction;
ng_value_fn ng_set_all, ng_set_traffic, ng_set_echo, ng_set_media_remove, ng_set_ice_lite;
ng_value_fn ng_set_dtls_fingerprint, ng_set_generate_rtcp, ng_set_dtmf_security, ng_set_player,
	ng_set_ptime, ng_set_ptime_reverse, ng_set_alias_key;
ng_value_fn ng_set_sdes;    /* ng_sdes.c */
ng_value_fn ng_set_zrtp;    /* ng_zrtp.c */
ng_value_fn ng_set_preauth; /* ng_preauth.c */
/* A word without a value: flags, transport words, words without effect. */
bool ng_set_word(struct ng_parser *x, struct str word);

/* ng_filter.c: keys with subtrees, and flags with the same meaning. False if it is not such a flag,
 * or malformed. */
void ng_set_codec_tree(struct ng_parser *x, const struct ngval *v);
/* After the whole request: removes operations that do not apply to its command. */
void ng_filter_finish(struct ng_parser *x);
void ng_set_attr_tree(struct ng_parser *x, const struct ngval *v);
bool ng_set_filter_word(struct ng_parser *x, struct str word);
/* Removes the attribute at every level. */
void ng_strip_attr(struct ng_parser *x, struct str attr);
/* ng_keys.c: reads all keys of the message, a dictionary, into the request. False: out of memory.
 */
bool ng_set_message(struct ng_parser *x, const struct ngval *msg);
/* ng_keys.c: adds a word to the reply's warning. */
void ng_unknown(struct ng_parser *x, struct str word);
/* ng_keys.c: counts a look-up. Call it before each one; true if the limit is exceeded. */
bool ng_too_many(struct ng_parser *x);
/* ng_values.c: adds "word: why" to the warning, for known words without effect. Only the first few
 * are named. */
void ng_note(struct ng_parser *x, struct str word, const char *why);

/* Handles a known key without effect. */
bool ng_set_ignored_key(struct ng_parser *x, struct str key);

/* ng_flags.c: parses the raw string of "rtpp-flags" into a list: a word is a string without key,
 * k=v one with key, [a b] a list. k=v has a key in a nested list, too. NULL: out of memory. */
struct ngval *ng_flags_split(struct pool *p, struct str text);

#endif
