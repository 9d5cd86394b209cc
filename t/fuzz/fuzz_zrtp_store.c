/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The saved cache of ZRTP secrets. Its encryption refuses changed files, so this is the second
 * line: an operator's own tool may have written it. What is read is written and read once more, and
 * both must be the same. */
#include <stdlib.h>
#include <string.h>

#include "base/secmem.h"
#include "keying/zrtp_store.h"

#define NOW_S 1800000000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct zrtp_store *create(uint32_t max)
{
	struct zrtp_store *s;

	if (zrtp_store_create(&s, &(struct zrtp_store_config){.max = max, .real_s = NOW_S}))
		abort();
	return s;
}

/* All that a session may do with a terminal. */
static void use(struct zrtp_store *s, const uint8_t zid[ZRTP_ZID])
{
	struct zrtp_secrets secrets;
	struct zrtp_kept kept = {.seconds = 60};

	if (zrtp_store_get(s, zid, 0, &secrets))
		kept.secrets = secrets;
	kept.mismatched = zid[0] & 1;
	zrtp_store_put(s, zid, 0, &kept);
	(void)zrtp_store_verify(s, zid, kept.sas_hash, zid[1] & 1);
	secmem_wipe(&secrets, sizeof(secrets));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct zrtp_store *s = create(8), *again = create(8);
	struct str bytes = {(const char *)data, len};
	struct sbuf one, two;

	sbuf_init(&one, 0);
	sbuf_init(&two, 0);
	if (!zrtp_store_read(s, bytes, 0)) {
		if (zrtp_store_count(s) > 8 || zrtp_store_write(s, &one) ||
			zrtp_store_read(again, sbuf_view(&one), 0) ||
			zrtp_store_write(again, &two) || !str_eq(sbuf_view(&one), sbuf_view(&two)))
			abort();
		for (size_t at = 0; at + ZRTP_ZID <= len && at < 4096; at += ZRTP_ZID)
			use(s, data + at);
	} else if (zrtp_store_count(s)) {
		abort();
	}
	sbuf_fini(&one);
	sbuf_fini(&two);
	zrtp_store_destroy(s);
	zrtp_store_destroy(again);
	return 0;
}
