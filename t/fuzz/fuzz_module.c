/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Input of the Kamailio module: the first byte chooses between a daemon's reply, a script's flags
 * and a body. The module's pure files are included instead of linked, because they are not part of
 * the daemon. */
#include <stdlib.h>

#include "../../module/policy.c"
#include "../../module/wire.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_text(const char *s, size_t size)
{
	if (strnlen(s, size) == size)
		abort();
	for (; *s; s++)
		if (*s < 0x20 || *s > 0x7e)
			abort();
}

static void reply(const char *p, size_t len)
{
	struct wire_reply r;

	wire_read(&r, p, len, true, TEXT("a"), TEXT("b"));
	check_text(r.reason, sizeof(r.reason));
	check_text(r.warning, sizeof(r.warning));
	check_text(r.from_suite, sizeof(r.from_suite));
	check_text(r.to_suite, sizeof(r.to_suite));
	if (r.result == WIRE_GARBAGE && r.sdp.len)
		abort();
	wire_fini(&r);
}

static void flags(const char *p, size_t len)
{
	char *out = malloc(len + 1), *buf = malloc(WIRE_MAX), again[4096];
	struct wire_request q = {.command = "offer", .call_id = TEXT("c"), .from_tag = TEXT("f")};
	struct words w;
	int n;

	words_split(&w, out, (struct text){p, len});
	if (w.flags_len > len)
		abort();
	q.flags = (struct text){out, w.flags_len};
	n = wire_write(buf, WIRE_MAX, (struct wire_sign){0}, TEXT("1_2"), &q);
	if (n > 0) {
		size_t flags_len = wire_flags(again, sizeof(again), (struct text){buf, (size_t)n});

		flags_len = policy_loosen(again, flags_len, len & 1);
		wire_rewrite(buf, WIRE_MAX, (struct wire_sign){0}, (struct text){buf, (size_t)n},
			TEXT("1_3"), (struct text){again, flags_len});
	}
	free(buf);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char suites[WIRE_SUITES];
	const char *p = (const char *)data + 1;

	if (!len)
		return 0;
	switch (*data) {
	case 'f':
		flags(p, len - 1);
		break;
	case 's':
		wire_sdp_suites(suites, sizeof(suites), (struct text){p, len - 1});
		check_text(suites, sizeof(suites));
		policy_has(5, suites);
		policy_only(5, suites);
		break;
	default:
		reply(p, len - 1);
	}
	return 0;
}
