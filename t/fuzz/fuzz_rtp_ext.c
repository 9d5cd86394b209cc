/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Header extensions of RTP: whatever is found lies inside the extension, for every ID. */
#include <stdlib.h>

#include "proto/rtp.h"
#include "proto/rtp_ext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *p = malloc(size ? size : 1);
	struct rtp_hdr h;
	int end;

	if (!p)
		return 0;
	memcpy(p, data, size);
	end = rtp_parse(&h, p, size);
	for (int id = 0; id < 256; id++) {
		struct rtp_ext e;

		if (!rtp_ext_find(&e, p, size, (uint8_t)id))
			continue;
		if (!id || end < 0 || e.at < p + RTP_FIXED_LEN + 4 || e.at + e.len > p + end)
			abort();
	}
	free(p);
	return 0;
}
