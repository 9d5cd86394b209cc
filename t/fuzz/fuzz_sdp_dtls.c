/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DTLS attributes of any SDP: what is read can be written, and is then read equal. */
#include <stdlib.h>

#include "proto/sdp_dtls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void write_lines(struct sbuf *b, const struct sdp_dtls *d)
{
	for (uint32_t i = 0; i < d->prints.count; i++) {
		sbuf_str(b, STR("a=fingerprint:"));
		sdp_fingerprint_write(b, &d->prints.f[i]);
		sbuf_str(b, STR("\n"));
	}
	if (d->setup != DTLS_SETUP_NONE)
		sbuf_printf(b, "a=setup:%s\n", dtls_setup_name(d->setup));
	if (d->tls_id.len)
		sbuf_printf(b, "a=tls-id:" STR_FMT "\n", STR_ARG(d->tls_id));
}

static void check(const struct sdp_dtls *d)
{
	static const struct str head =
		STR("v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nc=IN IP4 192.0.2.1\n"
		    "t=0 0\nm=audio 1 UDP/TLS/RTP/SAVP 0\n");
	static struct sdp s;
	struct sdp_dtls again;
	struct sbuf b;
	struct pool *p;
	uint32_t line;

	if (pool_create(&p, 1 << 20))
		return;
	sbuf_init(&b, 0);
	sbuf_str(&b, head);
	write_lines(&b, d);
	if (b.err || sdp_parse(&s, p, sbuf_view(&b), &line) != SDP_OK)
		abort();
	sdp_dtls_read(&again, &s, &s.media[0]);
	if (!sdp_fingerprints_eq(&again.prints, &d->prints) || again.setup != d->setup ||
		!str_eq(again.tls_id, d->tls_id))
		abort();
	sbuf_fini(&b);
	pool_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct sdp s;
	struct dtls_fingerprint f;
	struct pool *p;
	uint32_t line;

	(void)sdp_fingerprint_parse(&f, (struct str){(const char *)data, len});
	if (pool_create(&p, 1 << 20))
		return 0;
	if (sdp_parse(&s, p, (struct str){(const char *)data, len}, &line) == SDP_OK)
		for (uint32_t i = 0; i < s.media_count; i++) {
			struct sdp_dtls d;

			sdp_dtls_read(&d, &s, &s.media[i]);
			check(&d);
		}
	pool_destroy(p);
	return 0;
}
