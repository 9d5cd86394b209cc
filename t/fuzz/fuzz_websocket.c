/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WebSocket frames: however the bytes are cut into pieces, the same messages come out of them, none longer than it may be, no
 * text that is no UTF-8, and no more is kept than one message and a frame's head or a control frame. */
#include <stdlib.h>

#include "proto/utf8.h"
#include "proto/websocket.h"

#define MESSAGE_MAX 500u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static uint64_t mix(uint64_t h, const void *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ ((const uint8_t *)p)[i]) * 0x100000001b3ull;
	return h ^ len;
}

static uint64_t hear(struct ws_reader *r, const uint8_t *buf, int what, uint64_t sum)
{
	int code;

	sum = mix(sum, &what, sizeof(what));
	if (what == WS_TEXT || what == WS_BINARY) {
		if (r->len > MESSAGE_MAX || r->len > r->at)
			abort();
		if (what == WS_TEXT && !utf8_valid((struct str){(const char *)buf, r->len}))
			abort();
		sum = mix(sum, buf, r->len);
		ws_reader_next(r);
		return sum;
	}
	if (what < WS_CLOSE || what > WS_PONG || r->control_len > WS_CONTROL_MAX)
		abort();
	code = ws_close_code(r->control, r->control_len);
	if (code == 0)
		abort();
	return mix(sum, r->control, r->control_len);
}

static uint64_t read_all(const uint8_t *data, size_t len, size_t step)
{
	struct ws_reader r = {.max = MESSAGE_MAX};
	uint8_t *buf = malloc(len + 1);
	size_t have = 0, taken = 0;
	uint64_t sum = 0;
	int got = 0;

	while (got == 0 && taken < len) {
		size_t n = len - taken < step ? len - taken : step;

		memcpy(buf + have, data + taken, n);
		have += n;
		taken += n;
		while ((got = ws_read(&r, buf, &have)) > 0)
			sum = hear(&r, buf, got, sum);
		if (got == 0 && have > MESSAGE_MAX + WS_HEAD_MAX + WS_CONTROL_MAX)
			abort();
	}
	free(buf);
	return mix(sum, &got, sizeof(got));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t whole = read_all(data, len, len + 1);
	char accept[WS_ACCEPT_LEN];

	if (whole != read_all(data, len, 1) || whole != read_all(data, len, 7))
		abort();
	ws_accept(accept, (struct str){(const char *)data, len});
	return 0;
}
