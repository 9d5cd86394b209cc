/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A whole datagram as the proxy sends it: frame, codec, request. Also the raw flag string alone,
 * which people write. */
#include <stdlib.h>

#include "proto/bencode.h"
#include "proto/json.h"
#include "proto/ng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_request(struct pool *p, const struct ngval *v)
{
	struct ng_request r;

	ng_request_parse(&r, p, v);
	if ((r.tos < 0 && r.tos != NG_TOS_KEEP && r.tos != NG_TOS_DEFAULT) || r.tos > 255 ||
		r.command >= NG_COMMAND_COUNT || r.sdes.order[SUITE_COUNT - 1] != SUITE_PLAIN ||
		r.sdes.offerer_pref[SUITE_COUNT - 1] != SUITE_PLAIN)
		abort();
	for (size_t i = 0; i < r.warning.len; i++)
		if (r.warning.s[i] < 0x20 || r.warning.s[i] > 0x7e)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct str datagram = {(const char *)data, len};
	struct ngval *v = NULL;
	struct ng_frame f;
	struct pool *p;
	size_t pos;

	if (pool_create(&p, 8 << 20))
		return 0;
	if (ng_frame_parse(&f, datagram) == 0) {
		int err = f.encoding == NG_JSON ? json_parse(&v, p, f.body, &pos)
						: bencode_parse(&v, p, f.body, &pos);
		if (!err)
			check_request(p, v);
	} else {
		v = ngval_dict(p);
		ngval_add_str(p, v, STR("command"), STR("offer"));
		ngval_add_str(p, v, STR("rtpp-flags"), datagram);
		check_request(p, v);
	}
	pool_destroy(p);
	return 0;
}
