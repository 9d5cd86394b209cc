/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "call/codec_list.h"

#include "base/sbuf.h"
#include "proto/sdp_filter.h"

void codec_list_read(struct codec_list *out, struct str text)
{
	out->n = 0;
	while (text.len && out->n < CODEC_LIST_MAX) {
		struct str line = str_cut(&text, '\n');
		struct str number = str_cut(&line, '\t');
		struct codec_item c = {.accept = number.len && number.s[0] == '+',
			.also = number.len && number.s[0] == '~'};
		uint64_t type, bitrate;

		if (c.accept || c.also) {
			number.s++;
			number.len--;
		}
		c.name = str_cut(&line, '\t');
		c.fmtp = str_cut(&line, '\t');
		c.ours = str_cut(&line, '\t');
		if (line.len && str_to_u64(&bitrate, line, UINT32_MAX) == 0)
			c.bitrate = (uint32_t)bitrate;
		if (!c.name.len || str_to_u64(&type, number, SDP_TYPES - 1))
			continue;
		c.type = (uint8_t)type;
		out->at[out->n++] = c;
	}
}

/* It cannot be a part of a line. */
static bool unfit(struct str s)
{
	return str_has_control(s) || (s.len && memchr(s.s, '\t', s.len));
}

struct str codec_list_write(const struct codec_list *l, struct pool *p)
{
	struct str out;
	struct sbuf b;

	sbuf_init(&b, 0);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct codec_item *c = &l->at[i];

		if (unfit(c->name) || unfit(c->fmtp) || unfit(c->ours))
			continue;
		sbuf_printf(&b, "%s%u\t" STR_FMT "\t" STR_FMT "\t" STR_FMT,
			c->accept         ? "+"
				: c->also ? "~"
					  : "",
			c->type, STR_ARG(c->name), STR_ARG(c->fmtp), STR_ARG(c->ours));
		if (c->bitrate)
			sbuf_printf(&b, "\t%u", c->bitrate);
		sbuf_put(&b, "\n", 1);
	}
	out = b.err ? STR_NONE : pool_strdup(p, sbuf_view(&b));
	sbuf_fini(&b);
	return out;
}

void codec_list_add(struct codec_list *l, const struct codec_item *item)
{
	if (l->n < CODEC_LIST_MAX)
		l->at[l->n++] = *item;
}

const struct codec_item *codec_list_find(const struct codec_list *l, struct str name)
{
	for (uint32_t i = 0; i < l->n && name.len; i++)
		if (sdp_codec_is(name, l->at[i].name))
			return &l->at[i];
	return NULL;
}

const struct codec_item *codec_list_first(const struct codec_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (sdp_codec_is_voice(l->at[i].name))
			return &l->at[i];
	return NULL;
}
