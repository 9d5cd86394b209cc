/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints packets of our ZRTP exchanges as hex digits, one a line, with every message that we send:
 * for another parser (t/zrtp/crate). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../unit/zrtp_rig.h"

#include "base/bytes.h"

static bool print(struct zrtp_rig *r, int to, uint8_t *p, int *len)
{
	(void)r, (void)to;
	for (int i = 0; i < *len; i++)
		printf("%02x", p[i]);
	putchar('\n');
	return true;
}

static void begin(struct zrtp_rig *r, uint8_t agreement)
{
	zrtp_rig_init(r);
	r->wire = print;
	zrtp_rig_only(r, US, ZRTP_K_AGREEMENT, agreement);
	for (int i = 0; i < 2; i++) {
		r->cfg[i].cache = r->cfg[i].may_clear = true;
		r->has[i] = r->known[i].has_rs1 = r->known[i].has_pbx = true;
	}
	zrtp_rig_begin(r);
	zrtp_rig_run(r, 3000);
}

int main(void)
{
	static const uint8_t agreement[] = {ZRTP_EC25, ZRTP_DH3K, ZRTP_EC38, ZRTP_DH2K, ZRTP_X255},
			     sas[32] = {1};
	struct zrtp_rig r;

	for (size_t i = 0; i < ARRAY_LEN(agreement); i++) {
		begin(&r, agreement[i]);
		if (zrtp_rig_open(&r)) {
			zrtp_relay_sas(r.z[US],
				&(struct zrtp_far_sas){.hash = sas, .kind = ZRTP_B32}, r.now_ns);
			zrtp_rig_run(&r, 100);
			zrtp_clear(r.z[US], r.now_ns);
			zrtp_rig_run(&r, 100);
		}
		zrtp_rig_end(&r);
	}
	return 0;
}
