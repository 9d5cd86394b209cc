/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes of a hostile Redis server: nothing outside of them is read, no more nodes are used than
 * there are, and a reply that is complete is incomplete wherever it is cut. */
#include <errno.h>
#include <stdlib.h>

#include "proto/resp.h"

#define NODES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Counts nodes; all text lies within the input. */
static uint32_t check(const struct resp *r, const char *p, size_t len)
{
	uint32_t n = 1;

	if (r->type == RESP_STRING || r->type == RESP_STATUS || r->type == RESP_ERROR)
		must(r->text.s >= p && r->text.s + r->text.len <= p + len);
	for (uint32_t i = 0; r->type == RESP_ARRAY && i < r->elements; i++)
		n += check(&r->element[i], p, len);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct resp *node = malloc(NODES * sizeof(*node));
	char *copy = malloc(len + 1);
	int n;

	must(node && copy);
	if (len)
		memcpy(copy, data, len);
	n = resp_parse(node, NODES, copy, len);
	must(n <= (int)len && (n >= 0 || n == -EBADMSG || n == -EMSGSIZE));
	if (n > 0) {
		must(check(node, copy, (size_t)n) <= NODES);
		for (size_t cut = 0; cut < (size_t)n && cut < 64; cut++)
			must(resp_parse(node, NODES, copy, cut) == 0);
	}
	free(copy);
	free(node);
	return 0;
}
