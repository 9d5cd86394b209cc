/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The key SDES of ng: suites and options of a=crypto lines. */
#include "proto/ng_int.h"

/* Also when the name came through something that turned '_' into '-'. SUITE_PLAIN if unknown. */
static enum srtp_suite_id suite_find(struct str name)
{
	const struct srtp_suite *s = srtp_suite_find(name);
	char copy[48];

	if (!s && name.len && name.len < sizeof(copy)) {
		for (size_t i = 0; i < name.len; i++)
			copy[i] = name.s[i] == '-' || name.s[i] == ' ' ? '_' : name.s[i];
		s = srtp_suite_find((struct str){copy, name.len});
	}
	return s ? s->id : SUITE_PLAIN;
}

static bool set_suite_bit(uint32_t *mask, struct str name)
{
	enum srtp_suite_id id = suite_find(name);

	if (id == SUITE_PLAIN)
		return false;
	*mask |= 1u << id;
	return true;
}

/* "A;B;": known suites in this order, each once. Skips unknown ones, and then returns false. */
static bool set_suite_order(uint8_t order[SUITE_COUNT], struct str names)
{
	uint32_t seen = 0, n = 0;
	bool known = true;

	memset(order, SUITE_PLAIN, SUITE_COUNT);
	while (names.len) {
		struct str name = str_trim(str_cut(&names, ';'));
		enum srtp_suite_id id = suite_find(name);

		if (name.len && id == SUITE_PLAIN)
			known = false;
		if (id == SUITE_PLAIN || seen >> id & 1)
			continue;
		seen |= 1u << id;
		order[n++] = (uint8_t)id; /* at most SUITE_COUNT - 1: the last stays SUITE_PLAIN */
	}
	return known;
}

/* A list of unknown suites only still counts: no suite is acceptable, and the warning gives the
 * reason. */
static bool set_require(struct ng_sdes *s, struct str names)
{
	uint8_t order[SUITE_COUNT];
	bool known = set_suite_order(order, names);

	s->require_given = true;
	for (uint32_t i = 0; order[i] != SUITE_PLAIN; i++)
		s->require |= 1u << order[i];
	return known;
}

bool ng_set_sdes(struct ng_parser *x, struct str value)
{
	static const struct word_bit set[] = {
		WORD("off", NG_SDES_OFF),
		WORD("no", NG_SDES_OFF),
		WORD("disable", NG_SDES_OFF),
		WORD("nonew", NG_SDES_NONEW),
		WORD("pad", NG_SDES_PAD),
		WORD("lifetime", NG_SDES_LIFETIME),
		WORD("static", NG_SDES_STATIC),
		WORD("prefer", NG_SDES_PREFER),
		WORD("priority", NG_SDES_PREFER),
		WORD("UNENCRYPTED_SRTP", NG_SDES_UNENCRYPTED_SRTP),
		WORD("UNENCRYPTED_SRTCP", NG_SDES_UNENCRYPTED_SRTCP),
		WORD("UNAUTHENTICATED_SRTP", NG_SDES_UNAUTHENTICATED_SRTP),
	};
	static const struct word_bit clear[] = {
		WORD("ENCRYPTED_SRTP", NG_SDES_UNENCRYPTED_SRTP),
		WORD("ENCRYPTED_SRTCP", NG_SDES_UNENCRYPTED_SRTCP),
		WORD("AUTHENTICATED_SRTP", NG_SDES_UNAUTHENTICATED_SRTP),
	};
	struct ng_sdes *s = &x->r->sdes;
	const struct word_bit *w;
	struct str rest;

	if (ADD_BITS(s->flags, set, value))
		return true;
	w = FIND(clear, value);
	if (w) {
		s->flags &= ~w->bit;
		return true;
	}
	if ((rest = ng_rest_after(value, STR("no-"))).s)
		return set_suite_bit(&s->no, rest);
	if ((rest = ng_rest_after(value, STR("only-"))).s)
		return set_suite_bit(&s->only, rest);
	if ((rest = ng_rest_after(value, STR("require:"))).s)
		return set_require(s, rest);
	if ((rest = ng_rest_after(value, STR("order:"))).s)
		return set_suite_order(s->order, rest);
	if ((rest = ng_rest_after(value, STR("offerer_pref:"))).s)
		return set_suite_order(s->offerer_pref, rest);
	return false;
}
