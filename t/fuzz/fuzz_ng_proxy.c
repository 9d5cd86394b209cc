/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines between xcipher-web and xcipherd: a line that was read is written back unchanged, and a cut
 * line is never taken as complete. */
#include <stdlib.h>

#include "proto/ng_proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct str all = {(const char *)data, len};
	struct ng_proxy_request request, again;
	struct ng_proxy_reply reply;
	struct ng_proxy_hello hello;
	struct sbuf b;
	int n = ng_proxy_read_request(&request, all, 262144);

	(void)ng_proxy_read_hello(&hello, all);
	(void)ng_proxy_read_reply(&reply, all);
	if (n <= 0)
		return 0;
	if ((size_t)n > len || n > (int)NG_PROXY_LINE_MAX || request.len > 262144)
		abort();
	if (ng_proxy_read_request(&again, (struct str){all.s, (size_t)n - 1}, 262144) != 0)
		abort();
	sbuf_init(&b, 0);
	ng_proxy_write_request(&b, &request);
	if (ng_proxy_read_request(&again, sbuf_view(&b), 262144) != (int)b.len ||
		again.len != request.len || again.plain != request.plain ||
		again.token != request.token || !endpoint_eq(&again.client, &request.client))
		abort();
	sbuf_fini(&b);
	return 0;
}
