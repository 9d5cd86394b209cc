/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICE in SDP and in trickle fragments: never crashes, and candidates that were read are read again
 * from what was written. */
#include <stdlib.h>

#include "proto/sdp_ice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void candidate(const struct ice_candidate *c)
{
	struct ice_candidate again;
	struct sbuf b;

	sbuf_init(&b, 0);
	ice_candidate_write(&b, c);
	if (b.err || ice_candidate_parse(&again, (struct str){b.p + 2, b.len - 2}) ||
		memcmp(&again, c, sizeof(again)) != 0)
		abort();
	sbuf_fini(&b);
}

static void check(const struct sdp_ice *ice)
{
	if (ice->count > SDP_ICE_CANDIDATES)
		abort();
	for (uint32_t i = 0; i < ice->count; i++)
		candidate(&ice->candidate[i]);
}

static int section(void *ctx, const struct sdp_ice_section *s)
{
	(void)ctx;
	check(&s->ice);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct str text = {(const char *)data, len};
	struct ice_candidate c;
	struct sdp_ice ice;
	struct pool *pool;
	struct sdp s;

	if (ice_candidate_parse(&c, text) == 0)
		candidate(&c);
	sdp_ice_fragment_read(text, section, NULL);
	if (pool_create(&pool, 1 << 20))
		return 0;
	if (sdp_parse(&s, pool, text, NULL) == SDP_OK)
		for (uint32_t i = 0; i < s.media_count; i++) {
			sdp_ice_read(&ice, &s, i);
			check(&ice);
		}
	pool_destroy(pool);
	return 0;
}
