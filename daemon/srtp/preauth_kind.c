/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of SRTP+ schemes, the parameters of chain, and the block in its payloads. Pure. */
#include "srtp/preauth.h"

/* A wider tag saves no packet that SRTP would not refuse, and a narrower one lets too many through.
 * More tags in a payload would bear longer gaps, for more bandwidth. */
static const uint8_t widths[PREAUTH_WIDTHS] = {4, 8, 32};
static const uint8_t nexts[PREAUTH_NEXTS] = {8, 16, 32, 64};
static const uint16_t windows[PREAUTH_WINDOWS] = {64, 128, 512};
static const struct preauth_chain usual = {.width = 4, .next = 32, .window = 512};

static const struct {
	const char *name;
	unsigned bits;
} schemes[] = {
#define X(id, text, width) [PREAUTH_##id] = {text, width},
	PREAUTH_SCHEMES(X)
#undef X
};

/* In the order of struct preauth_chain's members. */
#define NAMES(width, next)                                                 \
	"chain/" #width "/" #next "/64", "chain/" #width "/" #next "/128", \
		"chain/" #width "/" #next "/512"
#define NAMES_OF(width) NAMES(width, 8), NAMES(width, 16), NAMES(width, 32), NAMES(width, 64)
static const char *const chains[] = {NAMES_OF(4), NAMES_OF(8), NAMES_OF(32)};
_Static_assert(ARRAY_LEN(chains) == PREAUTH_KINDS - PREAUTH_SCHEMES_COUNT, "a name for each");
_Static_assert(PREAUTH_KINDS < 255, "1 + scheme fits into a byte, and 255 is SDES_PREAUTH_UNKNOWN");

const char *preauth_name(enum preauth_scheme s)
{
	return s < PREAUTH_SCHEMES_COUNT ? schemes[s].name : chains[s - PREAUTH_SCHEMES_COUNT];
}

struct preauth_chain preauth_chain_of(enum preauth_scheme s)
{
	unsigned i = s - PREAUTH_SCHEMES_COUNT;

	if (s == PREAUTH_CHAIN)
		return usual;
	return (struct preauth_chain){.width = widths[i / (PREAUTH_NEXTS * PREAUTH_WINDOWS)],
		.next = nexts[i / PREAUTH_WINDOWS % PREAUTH_NEXTS],
		.window = windows[i % PREAUTH_WINDOWS]};
}

unsigned preauth_bits(enum preauth_scheme s)
{
	return preauth_is_chain(s) ? preauth_chain_of(s).width : schemes[s].bits;
}

uint32_t preauth_chain_len(enum preauth_scheme s)
{
	struct preauth_chain c = preauth_chain_of(s);

	return c.width * (uint32_t)c.next / 8;
}

static bool is_usual(enum preauth_scheme s)
{
	struct preauth_chain c = preauth_chain_of(s);

	return c.width == usual.width && c.next == usual.next && c.window == usual.window;
}

bool preauth_exists(enum preauth_scheme s)
{
	if ((unsigned)s < PREAUTH_SCHEMES_COUNT)
		return true;
	/* Half of the window is for packets that come late. The defaults have one number only. */
	return (unsigned)s < PREAUTH_KINDS && preauth_chain_len(s) <= PREAUTH_BLOCK_MAX &&
		2 * preauth_chain_of(s).next <= preauth_chain_of(s).window && !is_usual(s);
}

bool preauth_find(enum preauth_scheme *s, struct str name)
{
	for (unsigned i = 0; i < PREAUTH_KINDS; i++) {
		enum preauth_scheme at = (enum preauth_scheme)i;

		if (!str_eq_nocase(name, str_from(preauth_name(at))))
			continue;
		*s = at >= PREAUTH_SCHEMES_COUNT && is_usual(at) ? PREAUTH_CHAIN : at;
		return preauth_exists(*s);
	}
	return false;
}

static bool is_one_of(struct str text, const char *const *value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(text, str_from(value[i])))
			return true;
	return false;
}

const char *preauth_why_not(struct str name)
{
	static const char *const w[] = {"4", "8", "32"}, *const n[] = {"8", "16", "32", "64"},
				 *const all[] = {"64", "128", "512"};
	struct str width, next, rest = name;
	enum preauth_scheme s;

	if (preauth_find(&s, name))
		return NULL;
	if (!str_eq_nocase(str_cut(&rest, '/'), STR("chain")))
		return "schemes are sequence-aes, sequence-fips, header-hmac-sha1, "
		       "header-siphash, chain and chain/WIDTH/NEXT/WINDOW";
	width = str_cut(&rest, '/');
	next = str_cut(&rest, '/');
	if (!rest.s)
		return "parameters of chain are chain/WIDTH/NEXT/WINDOW";
	if (!is_one_of(width, w, ARRAY_LEN(w)))
		return "WIDTH of chain is 4, 8 or 32";
	if (!is_one_of(next, n, ARRAY_LEN(n)))
		return "NEXT of chain is 8, 16, 32 or 64";
	if (!is_one_of(rest, all, ARRAY_LEN(all)))
		return "WINDOW of chain is 64, 128 or 512";
	if (is_one_of(width, w + 2, 1) && !is_one_of(next, n, 2))
		return "NEXT of chain is 8 or 16 with a WIDTH of 32";
	return "WINDOW of chain is at least twice NEXT";
}

void preauth_chain_pack(uint32_t width, uint8_t *packed, const uint32_t *tag, uint32_t n)
{
	if (width == 4)
		for (; n >= 2; n -= 2, tag += 2)
			*packed++ = (uint8_t)(tag[0] << 4 | (tag[1] & 15));
	for (uint32_t i = 0; i < n; i++) {
		if (width == 32)
			put_be32(packed + 4 * i, tag[i]);
		else if (width == 8)
			packed[i] = (uint8_t)tag[i];
		else if (i % 2)
			packed[i / 2] |= tag[i] & 15;
		else
			packed[i / 2] = (uint8_t)((tag[i] & 15) << 4);
	}
}
