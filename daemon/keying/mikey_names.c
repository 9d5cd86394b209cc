/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of modes and reasons, identities, time. */
#include <errno.h>

#include "keying/mikey_int.h"

#define UNIX_EPOCH_NTP 2208988800ull /* seconds from 1900 to 1970 */
#define NS             1000000000ull

const char *mikey_mode_name(enum mikey_mode m)
{
	switch (m) {
#define X(id, name, type, rfc) \
	case MIKEY_##id:       \
		return name;
		MIKEY_MODES(X)
#undef X
	default:
		return "";
	}
}

enum mikey_mode mikey_mode_find(struct str name)
{
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++)
		if (str_eq_nocase(name, str_from(mikey_mode_name(m))))
			return m;
	return MIKEY_MODE_COUNT;
}

const char *mikey_failure_name(enum mikey_failure f)
{
	switch (f) {
#define X(id, name, error, text) \
	case MIKEY_FAIL_##id:    \
		return name;
		MIKEY_FAILURES(X)
#undef X
	default:
		return "";
	}
}

const char *mikey_failure_text(enum mikey_failure f)
{
	switch (f) {
#define X(id, name, error, text) \
	case MIKEY_FAIL_##id:    \
		return text;
		MIKEY_FAILURES(X)
#undef X
	default:
		return "";
	}
}

int mikey_id_set(struct mikey_id *out, uint8_t type, struct str name)
{
	memset(out, 0, sizeof(*out));
	if (name.len > MIKEY_ID_MAX)
		return -EINVAL;
	out->type = type;
	out->len = (uint8_t)name.len;
	if (name.len)
		memcpy(out->name, name.s, name.len);
	return 0;
}

bool mikey_id_eq(const struct mikey_id *a, const struct mikey_id *b)
{
	return a->type == b->type && str_eq(mikey_id_str(a), mikey_id_str(b));
}

bool mikey_name_eq(struct str a, struct str b)
{
	const char *at = a.len ? memchr(a.s, '@', a.len) : NULL;
	size_t user = at ? (size_t)(at - a.s) : 0;

	return a.len == b.len && memcmp(a.s, b.s, user) == 0 &&
		str_eq_nocase((struct str){a.s + user, a.len - user},
			(struct str){b.s + user, b.len - user});
}

uint64_t mikey_ntp(uint64_t unix_ns)
{
	uint64_t fraction = (unix_ns % NS << 32) / NS;

	return (unix_ns / NS + UNIX_EPOCH_NTP) << 32 | fraction;
}

int64_t mikey_unix_s(uint64_t ntp)
{
	uint64_t s = ntp >> 32;

	if (s < 0x80000000u)
		s += 1ull << 32;
	return (int64_t)(s - UNIX_EPOCH_NTP);
}

struct str mikey_with_ids(
	uint8_t buf[MIKEY_WITH_IDS_MAX], const struct mikey_run *r, struct str data)
{
	struct str parts[] = {data, mikey_id_str(&r->idi), mikey_id_str(&r->idr)};
	size_t len = 0;

	if (data.len > MIKEY_MESSAGE_MAX)
		return STR_NONE;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i].len)
			memcpy(buf + len, parts[i].s, parts[i].len);
		len += parts[i].len;
	}
	put_be32(buf + len, (uint32_t)(r->time >> 32));
	put_be32(buf + len + 4, (uint32_t)r->time);
	return mikey_bytes(buf, len + 8);
}
