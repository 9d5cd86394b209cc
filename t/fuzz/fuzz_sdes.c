/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SDES: never crashes, and what was read is read again from what was written. */
#include <stdlib.h>

#include "proto/sdes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sdes_bag bag, bag_again;
	struct sdes s, again;
	struct sbuf b;

	memset(&s, 0, sizeof(s));
	memset(&again, 0, sizeof(again));
	memset(&bag, 0, sizeof(bag));
	bag.n = len % 7; /* also when it is nearly full */
	bag_again = bag;
	if (sdes_parse(&s, &bag, (struct str){(const char *)data, len})) {
		if (memcmp(&bag, &bag_again, sizeof(bag)) != 0)
			abort();
		return 0;
	}
	sbuf_init(&b, 0);
	sdes_write(&b, &s, &bag, len & 1, false);
	if (b.err || sdes_parse(&again, &bag_again, sbuf_view(&b)) ||
		memcmp(&s, &again, sizeof(s)) != 0 || memcmp(&bag, &bag_again, sizeof(bag)) != 0)
		abort();
	sbuf_fini(&b);
	return 0;
}
