/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a=key-mgmt of any SDP: counts stay in bounds, and what is read can be written again. */
#include <stdlib.h>

#include "proto/base64.h"
#include "proto/sdp_keymgmt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct sdp_keymgmt *k, struct pool *p)
{
	uint8_t *message = pool_alloc(p, k->data.len + 1);
	struct sdp_keymgmt again;
	struct str line;
	int n = message ? base64_decode(message, k->data.len + 1, k->data) : -1;

	if (n <= 0)
		return;
	line = sdp_keymgmt_write(p, k->protocol, (struct str){(const char *)message, (size_t)n});
	if (!line.s)
		return;
	(void)str_cut(&line, ':');
	if (sdp_keymgmt_parse(&again, line) || !str_eq(again.protocol, k->protocol))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct sdp s;
	struct pool *p;

	if (pool_create(&p, 1 << 20))
		return 0;
	if (sdp_parse(&s, p, (struct str){(const char *)data, len}, NULL) == SDP_OK)
		for (uint32_t i = 0; i < s.media_count; i++) {
			struct sdp_keymgmt_lines lines;

			sdp_keymgmt_read(&lines, &s, &s.media[i]);
			if (lines.n > SDP_KEYMGMT_MAX || lines.place > lines.places ||
				sdp_keymgmt_ids(&lines, p).len > SDP_KEYMGMT_IDS_MAX)
				abort();
			for (uint32_t n = 0; n < lines.n; n++)
				check(&lines.line[n], p);
		}
	pool_destroy(p);
	return 0;
}
