/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The suite table, generated from the list in suite.h (RFC 3711, 4568 6.2, 6188, 7714), and its
 * look-up by id and by name. Pure. */
#include "srtp/suite.h"

#include "layout.h"

static const struct srtp_suite suites[SUITE_COUNT] = {[SUITE_PLAIN] = {.id = SUITE_PLAIN,
							      .name = "",
							      .alias = "",
							      .brief = "",
							      .cipher = XC_CIPHER_NULL,
							      .auth = XC_AUTH_NULL,
							      .rfc = "RFC 3550"},
#define X(sid, sname, salias, sbrief, scipher, sauth, key, salt, rtp_tag, rtcp_tag, srfc) \
	[SUITE_##sid] = {.id = SUITE_##sid,                                               \
		.name = sname,                                                            \
		.alias = salias,                                                          \
		.brief = sbrief,                                                          \
		.cipher = XC_CIPHER_##scipher,                                            \
		.auth = XC_AUTH_##sauth,                                                  \
		.key_len = key,                                                           \
		.salt_len = salt,                                                         \
		.rtp_tag_len = rtp_tag,                                                   \
		.rtcp_tag_len = rtcp_tag,                                                 \
		.rfc = srfc},
	SRTP_SUITES(X)
#undef X
};

const struct srtp_suite *srtp_suite_get(enum srtp_suite_id id)
{
	return (unsigned)id < SUITE_COUNT ? &suites[id] : NULL;
}

const struct srtp_suite *srtp_suite_find(struct str name)
{
	if (name.len == 0)
		return NULL;
	for (size_t i = SUITE_PLAIN + 1; i < SUITE_COUNT; i++)
		if (str_eq_nocase(name, str_from(suites[i].name)) ||
			str_eq_nocase(name, str_from(suites[i].alias)))
			return &suites[i];
	return NULL;
}
