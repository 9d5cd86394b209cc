/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a=zrtp-hash of any SDP: a value that is read can be written, and is then read equal. */
#include <stdlib.h>

#include "proto/sdp_zrtp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct sdp_zrtp *z)
{
	struct sdp_zrtp again;
	struct sbuf b;

	sbuf_init(&b, 0);
	sdp_zrtp_write(&b, z);
	if (b.err || sdp_zrtp_parse(&again, sbuf_view(&b)) || !sdp_zrtp_eq(&again, z))
		abort();
	sbuf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct str text = {(const char *)data, len};
	static struct sdp s;
	struct sdp_zrtp z;
	struct pool *p;
	uint32_t line;

	if (sdp_zrtp_parse(&z, text) == 0)
		check(&z);
	if (pool_create(&p, 1 << 20))
		return 0;
	if (sdp_parse(&s, p, text, &line) == SDP_OK)
		for (uint32_t i = 0; i < s.media_count; i++) {
			sdp_zrtp_read(&z, &s, &s.media[i]);
			if (z.given)
				check(&z);
		}
	pool_destroy(p);
	return 0;
}
