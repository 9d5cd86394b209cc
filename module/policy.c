/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Security and emergency policy. Pure. A class of suites names a set of rows, so that scripts need
 * no spellings. The daemon enforces the policy on the leg it writes (SDES-only-...). On the leg
 * that a message came from, only the proxy can refuse in time, so the module reads the a=crypto
 * lines itself. */
#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "srtp/suite.h"

enum { STRONG = 1, AEAD = 2, AUTH80 = 4, ENCRYPTED = 8 };
/* The classes of suites, from the daemon's table (srtp/suite.h). */
enum {
	CIPHER_NULL = 0,
	CIPHER_AES_CM = ENCRYPTED,
	CIPHER_AES_F8 = ENCRYPTED,
	CIPHER_GCM = ENCRYPTED
};
enum { AUTH_HMAC_SHA1 = 0, AUTH_GCM = AEAD };

static const struct {
	const char *name;
	unsigned classes;
} SUITES[] = {
#define X(id, name, alias, brief, cipher, auth, key, salt, tag, rtcp_tag, rfc) \
	{name,                                                                 \
		CIPHER_##cipher | AUTH_##auth | ((tag) >= 10 ? AUTH80 : 0) |   \
			((key) >= 32 ? STRONG : 0)},
	SRTP_SUITES(X)
#undef X
};
#define N_SUITES (sizeof(SUITES) / sizeof(SUITES[0]))

static const struct {
	const char *name;
	unsigned needs;
} CLASSES[] = {{"any", 0}, {"encrypted", ENCRYPTED}, {"auth80", AUTH80 | ENCRYPTED}, {"aead", AEAD},
	{"strong", STRONG | AUTH80}};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The next item of a list, cut off *rest. */
static struct text cut(struct text *rest, bool commas)
{
	struct text item;

	while (rest->len && (is_blank(*rest->s) || (commas && *rest->s == ',')))
		rest->s++, rest->len--;
	item = (struct text){rest->s, 0};
	while (item.len < rest->len && !is_blank(item.s[item.len]) &&
		!(commas && item.s[item.len] == ','))
		item.len++;
	rest->s += item.len;
	rest->len -= item.len;
	return item;
}

static uint32_t suite_bit(struct text name)
{
	/* Deployed phones write AES_CM_256_... where RFC 6188 says AES_256_CM_.... */
	if (name.len > 11 && !strncmp(name.s, "AES_CM_256_", 11))
		return suite_bit((struct text){"AES_256_CM_HMAC_SHA1_80", 23})
			<< (text_is((struct text){name.s + name.len - 3, 3}, "_32"));
	for (uint32_t i = 0; i < N_SUITES; i++)
		if (text_is(name, SUITES[i].name))
			return 1u << i;
	return 0;
}

/* Classes and suites, comma-separated; 0 if one is unknown. */
static uint32_t set_parse(struct text list)
{
	uint32_t set = 0, found;

	while (list.len) {
		struct text item = cut(&list, true);

		if (!item.len)
			break;
		found = suite_bit(item);
		for (size_t c = 0; c < sizeof(CLASSES) / sizeof(CLASSES[0]); c++)
			for (uint32_t i = 0; text_is(item, CLASSES[c].name) && i < N_SUITES; i++)
				if ((SUITES[i].classes & CLASSES[c].needs) == CLASSES[c].needs)
					found |= 1u << i;
		if (!found)
			return 0;
		set |= found;
	}
	return set;
}

static bool starts(struct text t, const char *prefix)
{
	size_t n = strlen(prefix);

	return t.len >= n && text_is((struct text){t.s, n}, prefix);
}

static struct text after(struct text t, const char *prefix)
{
	size_t n = strlen(prefix);

	return (struct text){t.s + n, t.len - n};
}

/* Whether the word is one of the module's own. */
static bool own_word(struct words *w, struct text t)
{
	if (starts(t, "require-in=")) {
		w->policy.require_in = set_parse(after(t, "require-in="));
		w->bad |= !w->policy.require_in;
	} else if (starts(t, "require-out=")) {
		w->policy.require_out = set_parse(after(t, "require-out="));
		w->bad |= !w->policy.require_out;
	} else if (starts(t, "policy=")) {
		w->policy.downgrade = text_is(t, "policy=downgrade");
		w->bad |= !w->policy.downgrade && !text_is(t, "policy=refuse");
	} else if (starts(t, "via-branch=") && t.len - 11 < sizeof(w->via)) {
		memcpy(w->via, t.s + 11, t.len - 11);
		w->via[t.len - 11] = 0;
	} else if (starts(t, "node-set=")) {
		w->set = (uint32_t)strtoul(t.s + 9, NULL, 10);
	} else if (text_is(t, "nowait")) {
		w->nowait = true;
	} else if (text_is(t, "emergency")) {
		w->policy.emergency = true;
	} else {
		return false;
	}
	return true;
}

void words_split(struct words *w, char *out, struct text flags)
{
	*w = (struct words){0};
	while (flags.len) {
		struct text t = cut(&flags, false);

		if (!t.len || own_word(w, t))
			continue;
		if (w->flags_len)
			out[w->flags_len++] = ' ';
		memcpy(out + w->flags_len, t.s, t.len);
		w->flags_len += t.len;
	}
	out[w->flags_len] = 0;
}

bool policy_has(uint32_t set, const char *list)
{
	struct text rest = {list, strlen(list)};

	while (rest.len)
		if (suite_bit(cut(&rest, true)) & set)
			return true;
	return false;
}

bool policy_only(uint32_t set, const char *list)
{
	struct text rest = {list, strlen(list)};
	bool any = false;

	while (rest.len) {
		if (!(suite_bit(cut(&rest, true)) & set))
			return false;
		any = true;
	}
	return any;
}

bool policy_body(
	uint32_t set, struct text sdp, bool all, bool opportunistic, char failing[POLICY_LIST])
{
	while (wire_sdp_media(failing, POLICY_LIST, &sdp, opportunistic))
		if (!(all ? policy_only(set, failing) : policy_has(set, failing)))
			return false;
	return true;
}

void policy_flags(char *out, size_t size, uint32_t set)
{
	size_t n = 0;

	out[0] = 0;
	for (uint32_t i = 0; set && i < N_SUITES; i++)
		if (set >> i & 1 && n < size)
			n += (size_t)snprintf(out + n, size - n, " SDES-only-%s", SUITES[i].name);
}

/* Whether t, the text after "SDES-" or "SDES=", limits the suites. */
static bool is_limit(struct text t)
{
	return starts(t, "only-") || starts(t, "no-") || starts(t, "require:") ||
		text_is(t, "nonew");
}

static bool limits_suites(struct text t)
{
	return (starts(t, "SDES-") || starts(t, "SDES=")) && is_limit(after(t, "SDES-"));
}

static bool is_transport(struct text t)
{
	static const char *const names[] = {"RTP/SAVP", "RTP/SAVPF", "SRTP", "UDP/TLS/RTP/SAVP",
		"UDP/TLS/RTP/SAVPF", "DTLS", "RTP", "AVP", "AVPF", "RTP/AVP", "RTP/AVPF"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (text_is(t, names[i]))
			return true;
	return starts(t, "transport-protocol=");
}

/* Allows one keying only, which may fail. */
static bool demands_keying(struct text t)
{
	static const char *const names[] = {"MIKEY=require", "MIKEY-require", "DTLS=NENA",
		"DTLS-NENA", "ZRTP=require", "ZRTP-require", "ZRTP=hold", "ZRTP-hold"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (text_is(t, names[i]))
			return true;
	return false;
}

/* Removes limits of suites from the words of "SDES=[a b c]". Brackets stay. */
static struct text of_list(struct text t, bool first, char *buf)
{
	static const char open[] = "SDES=[";
	struct text core = first ? after(t, open) : t;
	bool closes = core.len && core.s[core.len - 1] == ']';
	size_t n = first ? sizeof(open) - 1 : 0;

	core.len -= closes;
	memcpy(buf, open, n);
	if (!is_limit(core)) {
		memmove(buf + n, core.s, core.len);
		n += core.len;
	}
	if (closes)
		buf[n++] = ']';
	return (struct text){buf, n};
}

size_t policy_loosen(char *flags, size_t len, bool transport)
{
	struct text rest = {flags, len};
	bool list = false;
	size_t n = 0;

	while (rest.len) {
		struct text t = cut(&rest, false);
		bool first = starts(t, "SDES=["), closes = t.len && t.s[t.len - 1] == ']';
		char *to = flags + n + (n > 0);

		/* The result is at most as long as the input. */
		if (list || first)
			t = of_list(t, first, to);
		else if (limits_suites(t) || (transport && (is_transport(t) || demands_keying(t))))
			continue;
		list = (list || first) && !closes;
		if (!t.len)
			continue;
		memmove(to, t.s, t.len);
		if (n)
			flags[n++] = ' ';
		n += t.len;
	}
	return n;
}

bool policy_allows(const char *list, const char *what)
{
	struct text rest = {list ? list : "", list ? strlen(list) : 0};

	while (rest.len)
		if (text_is(cut(&rest, true), what))
			return true;
	return false;
}

bool policy_sos(struct text uri)
{
	return starts(uri, "urn:service:sos") &&
		(uri.len == 15 || uri.s[15] == '.' || uri.s[15] == ';' || uri.s[15] == '>');
}
