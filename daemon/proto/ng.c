/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng messages: framing, names, and requests from value trees: first keys and flags (ng_keys.c),
 * then the command, then the warning about unknown words. Pure. */
#include "proto/ng_int.h"

#include <errno.h>

/* --- Framing ------------------------------------------------------------------------------- */

int ng_frame_parse(struct ng_frame *out, struct str datagram)
{
	struct ng_frame f = {.encoding = NG_BENCODE};
	const char *space = datagram.len ? memchr(datagram.s, ' ', datagram.len) : NULL;

	if (!space || space == datagram.s)
		return -ENOMSG;
	f.cookie = (struct str){datagram.s, (size_t)(space - datagram.s)};
	if (f.cookie.len > NG_COOKIE_MAX)
		return -ENOMSG;
	for (size_t i = 0; i < f.cookie.len; i++)
		if (!ng_cookie_byte(f.cookie.s[i]))
			return -ENOMSG;
	/* Testers at a shell send a line end too, and neither encoding can end with white space. */
	f.body = str_trim((struct str){space + 1, datagram.len - f.cookie.len - 1});
	*out = f;
	if (f.body.len == 0)
		return -ENODATA;
	if (f.body.s[0] != 'd' && f.body.s[0] != '{')
		return -EPROTO;
	out->encoding = f.body.s[0] == '{' ? NG_JSON : NG_BENCODE;
	return 0;
}

/* --- Names --------------------------------------------------------------------------------- */

const char *ng_command_name(enum ng_command c)
{
	static const char *const names[NG_COMMAND_COUNT] = {"none",
#define X(id, name) name,
		NG_COMMANDS(X)
#undef X
	};

	return (unsigned)c < NG_COMMAND_COUNT ? names[c] : "?";
}

const char *ng_flag_name(enum ng_flag f)
{
	static const char *const names[NG_FLAG_COUNT] = {
#define X(id, name) name,
		NG_FLAGS(X)
#undef X
	};

	return (unsigned)f < NG_FLAG_COUNT ? names[f] : "?";
}

/* --- Requests ------------------------------------------------------------------------------ */

#define WARNING_WORD_MAX 64u

static void write_warning(struct ng_parser *x)
{
	uint32_t n = min_u32(x->unknown_count, NG_UNKNOWN_MAX);
	static const char head[] = "unknown flag: ";
	size_t len = sizeof(head) - 1;
	char *text;

	if (n == 0)
		return;
	text = pool_alloc(x->p, len + n * (WARNING_WORD_MAX + 2) + sizeof(", ..."));
	if (!text)
		return;
	memcpy(text, head, len);
	for (uint32_t i = 0; i < n; i++) {
		const struct str w = x->unknown[i];
		size_t word_len = min_u32((uint32_t)w.len, WARNING_WORD_MAX);

		if (i > 0) {
			text[len++] = ',';
			text[len++] = ' ';
		}
		/* goes into logs too: no line ends or terminal sequences */
		for (size_t j = 0; j < word_len; j++)
			text[len++] = w.s[j] >= 0x20 && w.s[j] < 0x7f ? w.s[j] : '?';
	}
	if (x->unknown_count > n) {
		memcpy(text + len, ", ...", 5);
		len += 5;
	}
	x->r->warning = (struct str){text, len};
}

static enum ng_command command_find(struct str name)
{
	for (int c = NG_NONE + 1; c < NG_COMMAND_COUNT; c++)
		if (ng_spelled_like(str_from(ng_command_name((enum ng_command)c)), name))
			return (enum ng_command)c;
	return NG_NONE;
}

int ng_request_parse(struct ng_request *out, struct pool *p, const struct ngval *msg)
{
	return ng_request_parse_with(out, p, msg, NULL);
}

int ng_request_parse_with(struct ng_request *out, struct pool *p, const struct ngval *msg,
	const struct ng_templates *templates)
{
	struct ng_parser x = {.r = out, .p = p, .templates = templates};

	*out = (struct ng_request){.tos = NG_TOS_DEFAULT,
		.delete_delay = -1,
		.limit = -1,
		.play = {.repeat_times = -1,
			.start_pos = -1,
			.repeat_ms = -1,
			.duration = -1,
			.pause = -1,
			.volume = -1},
		.dtmf = {.end_digits = -1, .end_ms = -1, .hz = -1}};
	if (msg->type != NGVAL_DICT)
		return -ENOKEY;
	if (!ng_set_message(&x, msg))
		return -ENOMEM;
	out->command = command_find(out->command_text);
	ng_filter_finish(&x);
	write_warning(&x);
	if (x.note.len)
		out->warning = out->warning.len ? pool_printf(p, STR_FMT "; " STR_FMT,
							  STR_ARG(out->warning), STR_ARG(x.note))
						: x.note;
	if (pool_failed(p))
		return -ENOMEM;
	if (!out->command_text.len)
		return -ENOKEY;
	return out->command == NG_NONE ? -EOPNOTSUPP : 0;
}
