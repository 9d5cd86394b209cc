/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SDES: never crashes, and what was read is read again from what was written. */
#include <stdlib.h>

#include "proto/sdes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sdes s, again;
	struct sbuf b;

	memset(&s, 0, sizeof(s));
	memset(&again, 0, sizeof(again));
	if (sdes_parse(&s, (struct str){(const char *)data, len}))
		return 0;
	sbuf_init(&b, 0);
	sdes_write(&b, &s, len & 1, false);
	if (b.err || sdes_parse(&again, sbuf_view(&b)) || memcmp(&s, &again, sizeof(s)) != 0)
		abort();
	sbuf_fini(&b);
	return 0;
}
