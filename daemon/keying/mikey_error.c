/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Error messages (RFC 3830 5.1.2, 6.12). */
#include <errno.h>

#include "keying/mikey_int.h"

static uint8_t number(enum mikey_failure f)
{
	switch (f) {
#define X(id, name, error, text) \
	case MIKEY_FAIL_##id:    \
		return MIKEY_ERR_##error;
		MIKEY_FAILURES(X)
#undef X
	default:
		return MIKEY_ERR_UNSPECIFIED;
	}
}

int mikey_error(const struct mikey_run *run, struct mikey_out *out)
{
	struct mikey_run r = *run;
	struct mikey_writer w;
	int len;

	out->len = 0;
	if (run->initiator || run->state != MIKEY_FAILED || !run->failure)
		return -EINVAL;
	r.sessions = 0;
	mikey_put_header(&w, out, &r, MIKEY_TYPE_ERROR);
	mikey_put_time(&w, &r);
	mikey_write_err(&w, number(run->failure));
	for (uint8_t i = 0; run->failure == MIKEY_FAIL_POLICY && i < run->suites; i++)
		mikey_put_policy(&w, i, run->suite[i]);
	if (run->believed) {
		mikey_write_v(&w, MIKEY_MAC_HMAC_SHA1);
		return mikey_end_mac(&w, out, &r, true) ? -EMSGSIZE : 0;
	}
	len = mikey_write_end(&w);
	if (len < 0)
		return len;
	out->len = (size_t)len;
	return 0;
}
