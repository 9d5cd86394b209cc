/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See find.h. Cheap conditions are tried first: counters of streams are read only for the rest. */
#include "call/find.h"

#include "base/clock.h"
#include "call/names.h"
#include "srtp/suite.h"

/* --- Words ------------------------------------------------------------------------------------ */

static bool find_word(uint32_t *words, struct str word)
{
	static const char *const names[FIND_WORD_COUNT] = {
#define X(id, name, help) name,
		FIND_WORDS(X)
#undef X
	};

	for (uint32_t i = 0; i < FIND_WORD_COUNT; i++)
		if (ng_spelled_like(word, str_from(names[i]))) {
			*words |= 1u << i;
			return true;
		}
	return false;
}

bool find_order(enum find_order *out, struct str name)
{
	static const char *const names[FIND_ORDER_COUNT] = {
#define X(id, name, help) name,
		FIND_ORDERS(X)
#undef X
	};

	*out = FIND_BY_NEW;
	for (uint32_t i = 0; i < FIND_ORDER_COUNT; i++)
		if (ng_spelled_like(name, str_from(names[i]))) {
			*out = (enum find_order)i;
			return true;
		}
	return name.len == 0;
}

/* "3.5" becomes 350. */
static bool hundredths(uint32_t *out, struct str value, uint64_t max)
{
	struct str whole = str_cut(&value, '.');
	uint64_t n, f = 0;

	if (str_to_u64(&n, whole, max) || value.len > 2 || (value.len && str_to_u64(&f, value, 99)))
		return false;
	*out = (uint32_t)(n * 100 + (value.len == 1 ? f * 10 : f));
	return true;
}

/* "90", "90s", "10m", "2h", "7d" */
static bool duration(uint64_t *out_ns, struct str value)
{
	uint64_t unit = 1, n;

	switch (value.len ? value.s[value.len - 1] : 0) {
	case 'd':
		unit *= 24;
		__attribute__((fallthrough));
	case 'h':
		unit *= 60;
		__attribute__((fallthrough));
	case 'm':
		unit *= 60;
		__attribute__((fallthrough));
	case 's':
		value.len--;
	}
	if (str_to_u64(&n, value, 100000) || n == 0)
		return false;
	*out_ns = n * unit * NS_PER_SEC;
	return true;
}

/* Parses NAME=VALUE. NULL, or the error. */
static const char *take_pair(struct find *f, struct str name, struct str value)
{
	if (ng_spelled_like(name, STR("mos-below")))
		return hundredths(&f->mos_below, value, 5) && f->mos_below
			? NULL
			: "mos-below is a mean opinion score, as 3.5";
	if (ng_spelled_like(name, STR("loss-above"))) {
		f->by_loss = true;
		return hundredths(&f->loss_above, value, 100)
			? NULL
			: "loss-above is a percentage, as 1.5";
	}
	if (ng_spelled_like(name, STR("since")))
		return duration(&f->since_ns, value) ? NULL
						     : "since is a time, as 90s, 10m, 2h or 1d";
	if (ng_spelled_like(name, STR("ip")))
		return endpoint_parse_addr(&f->ip, value) == 0
			? NULL
			: "ip is an IPv4 or IPv6 address of a terminal";
	if (!value.len)
		return "a filter's value is missing";
	if (ng_spelled_like(name, STR("suite")))
		f->suite = value;
	else if (ng_spelled_like(name, STR("codec")))
		f->codec = value;
	else
		return "a filter is one of one-way, bad-tags, trouble, plain, early, up, hold, ending, emergency, mos-below=, loss-above=, suite=, codec=, ip=, since=";
	return NULL;
}

const char *find_parse(struct find *out, struct str text)
{
	*out = (struct find){0};
	while (text.len) {
		struct str word = str_word(&text), value = word, name;
		const char *wrong;

		if (!word.len)
			continue;
		name = str_cut(&value, '=');
		if (name.len < word.len) {
			wrong = take_pair(out, name, value);
			if (wrong)
				return wrong;
		} else if (!find_word(&out->words, word)) {
			if (out->part.len)
				return "a filter takes one part of a Call-ID, tag or name";
			out->part = word;
		}
	}
	return NULL;
}

/* --- Matching --------------------------------------------------------------------------------- */

static bool contains(struct str text, struct str part)
{
	return part.len == 0 || (text.len && memmem(text.s, text.len, part.s, part.len));
}

/* Suites and codecs ignore case. */
static bool contains_nocase(const char *text, struct str part)
{
	size_t len = strlen(text);

	for (size_t i = 0; i + part.len <= len; i++)
		if (str_eq_nocase((struct str){text + i, part.len}, part))
			return true;
	return false;
}

static bool has_suite(const struct relay *relay, const struct call *c, const struct side *s,
	const struct leg *l, struct str part)
{
	enum srtp_suite_id id[] = {srtp_params_suite(&l->rx), srtp_params_suite(&l->tx)};
	struct relay_stats st;
	const char *shown;

	if (str_eq_nocase(part, STR("plain")))
		return leg_is_plain(relay, c, s, l);
	leg_stats(relay, c, l, false, &st);
	shown = leg_suite(l, &l->rx, leg_keying_now(relay, c, s, l, st.others));
	if (shown && contains_nocase(shown, part))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(id); i++)
		if (contains_nocase(srtp_suite_get(id[i])->name, part))
			return true;
	return false;
}

static bool leg_has_ip(const struct relay *relay, const struct call *c, const struct leg *l,
	const struct endpoint *ip)
{
	struct relay_stats st;

	if (endpoint_addr_eq(&l->remote, ip) || endpoint_addr_eq(&l->said.remote, ip))
		return true;
	leg_stats(relay, c, l, false, &st);
	return st.remote.family && endpoint_addr_eq(&st.remote, ip);
}

static bool contains_id(const struct call *c, struct str part)
{
	struct names names;

	names_of(&names, c);
	if (contains(c->id, part) || contains(names.from, part) || contains(names.to, part))
		return true;
	for (uint32_t i = 0; i < c->sides; i++)
		if (!c->side[i]->gone && contains(c->side[i]->tag, part))
			return true;
	return false;
}

static bool legs_match(const struct find *f, const struct relay *relay, const struct call *c)
{
	bool suite = !f->suite.len, codec = !f->codec.len, ip = !f->ip.family;

	if (suite && codec && ip)
		return true;
	for (uint32_t i = 0; i < c->sides; i++)
		for (uint32_t m = 0; m < c->side[i]->legs && !c->side[i]->gone; m++) {
			const struct leg *l = c->side[i]->leg[m];

			if (!l || !l->has_port)
				continue;
			suite = suite || has_suite(relay, c, c->side[i], l, f->suite);
			codec = codec || contains_nocase(l->codec, f->codec);
			ip = ip || leg_has_ip(relay, c, l, &f->ip);
		}
	return suite && codec && ip;
}

static bool words_match(uint32_t words, const struct call *c, const struct sight *s)
{
	const bool holds[FIND_WORD_COUNT] = {
		[FIND_ONE_WAY] = s->troubles >> SIGHT_TROUBLE_ONE_WAY & 1,
		[FIND_BAD_TAGS] = s->troubles >> SIGHT_TROUBLE_BAD_TAGS & 1,
		[FIND_TROUBLE] = s->troubles != 0,
		[FIND_PLAIN] = s->plain,
		[FIND_EARLY] = s->state == SIGHT_EARLY,
		[FIND_UP] = s->state == SIGHT_UP,
		[FIND_HOLD] = s->state == SIGHT_HOLD,
		[FIND_ENDING] = s->state == SIGHT_ENDING,
		[FIND_EMERGENCY] = c->emergency,
	};

	for (uint32_t i = 0; i < FIND_WORD_COUNT; i++)
		if (words >> i & 1 && !holds[i])
			return false;
	return true;
}

bool find_matches(const struct find *f, const struct relay *relay, const struct call *c,
	uint64_t now_ns, struct sight *s)
{
	bool figures = f->words || f->mos_below || f->by_loss || f->order > FIND_BY_AGE;

	*s = (struct sight){0};
	if (f->since_ns && c->created_ns + f->since_ns < now_ns)
		return false;
	if (!contains_id(c, f->part) || !legs_match(f, relay, c))
		return false;
	if (!figures)
		return true;
	sight_take(s, relay, c, now_ns);
	if (f->mos_below && (!s->measured || s->mos >= f->mos_below))
		return false;
	if (f->by_loss && (!s->measured || s->loss <= f->loss_above))
		return false;
	return words_match(f->words, c, s);
}

/* Calls without measurements come last. */
double find_rank(enum find_order order, const struct call *c, const struct sight *s)
{
	switch (order) {
	case FIND_BY_MOS:
		return s->measured ? (double)s->mos : 1e9;
	case FIND_BY_LOSS:
		return s->measured ? -(double)s->loss : 1;
	case FIND_BY_RTT:
		return -(double)s->rtt;
	case FIND_BY_JITTER:
		return -(double)s->jitter;
	case FIND_BY_ERRORS:
		return -(double)s->errors;
	case FIND_BY_PACKETS:
		return -(double)s->packets;
	case FIND_BY_SILENCE:
		return s->last_ns ? (double)s->last_ns : (double)c->signal_ns;
	default:
		return (double)c->created_ns;
	}
}
