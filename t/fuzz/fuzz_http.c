/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests behind each other, heads and bodies, decoded where they are: however the bytes are cut into pieces, the same comes
 * out of them, and no body is longer than it may be. */
#include <errno.h>
#include <stdlib.h>

#include "proto/http.h"

#define BODY_MAX 1000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What was read, as one number: FNV-1a over all of it. */
static uint64_t mix(uint64_t h, const void *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ ((const uint8_t *)p)[i]) * 0x100000001b3ull;
	return h ^ len;
}

struct reader {
	char *buf;
	size_t len, at, line;
	bool in_body;
	struct http_body body;
	uint64_t sum;
};

static int read_head(struct reader *r)
{
	struct str rest = {r->buf + r->at, r->len - r->at}, one;
	struct http_list l = {.name = "Connection"};
	int n = http_head_end(rest, &r->line), status;
	struct http_head h;

	if (n <= 0)
		return n;
	status = http_head_parse(&h, (struct str){rest.s, (size_t)n});
	r->sum = mix(r->sum, &status, sizeof(status));
	if (status)
		return -EBADMSG;
	if (h.path.len == 0 || h.fields > HTTP_FIELDS_MAX ||
		(h.framing == HTTP_BODY_NONE && h.length))
		abort();
	r->sum = mix(r->sum, h.path.s, h.path.len);
	r->sum = mix(r->sum, h.host.s, h.host.len);
	while (http_list_next(&l, &h, &one))
		r->sum = mix(r->sum, one.s, one.len);
	http_body_init(&r->body, &h, BODY_MAX);
	r->in_body = true;
	r->at += (size_t)n;
	r->line = 0;
	return 1;
}

static int read_body(struct reader *r)
{
	size_t left = r->len - r->at;
	int got = http_body_read(&r->body, r->buf + r->at, &left);

	if (left > r->len - r->at || r->body.len > BODY_MAX || r->body.len > r->body.at)
		abort();
	if (got == 0 && left > BODY_MAX + 4096) /* a trailer's line is the longest */
		abort();
	r->len = r->at + left;
	if (got != 1)
		return got;
	r->sum = mix(r->sum, r->buf + r->at, r->body.len);
	r->at += r->body.at;
	r->in_body = false;
	return 1;
}

static uint64_t read_all(const uint8_t *data, size_t len, size_t step)
{
	struct reader r = {.buf = malloc(len + 1)};
	size_t taken = 0;
	int got = 0;

	while (got == 0 && taken < len) {
		size_t n = len - taken < step ? len - taken : step;

		memcpy(r.buf + r.len, data + taken, n);
		r.len += n;
		taken += n;
		do
			got = r.in_body ? read_body(&r) : read_head(&r);
		while (got > 0);
	}
	free(r.buf);
	return mix(r.sum, &got, sizeof(got));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t whole = read_all(data, len, len + 1);

	if (whole != read_all(data, len, 1) || whole != read_all(data, len, 7))
		abort();
	return 0;
}
