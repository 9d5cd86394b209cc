/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/sdp_jsep.h"

static bool has_rtpmap(const struct sdp_media *m, struct str format)
{
	for (const struct sdp_line *l = sdp_attr(m->lines, STR("rtpmap")); l;
		l = sdp_attr(l->next, STR("rtpmap"))) {
		struct str rest = l->arg;

		if (str_eq(str_word(&rest), format))
			return true;
	}
	return false;
}

static bool has_direction(const struct sdp_media *m)
{
	for (int d = SDP_DIR_SENDRECV; d <= SDP_DIR_INACTIVE; d++)
		if (sdp_attr(m->lines, sdp_dir_name((enum sdp_dir)d)))
			return true;
	return false;
}

void sdp_jsep_write(struct sbuf *b, const struct sdp *s, const struct sdp_media *m, bool direction)
{
	const char *eol = s->crlf ? "\r\n" : "\n";
	struct str formats = m->formats, format;
	uint64_t type;

	while ((format = str_word(&formats)).len) {
		struct str codec = STR_NONE;

		if (str_to_u64(&type, format, 34) == 0)
			codec = sdp_static_codec((uint32_t)type);
		if (codec.s && !has_rtpmap(m, format))
			sbuf_printf(b, "a=rtpmap:" STR_FMT " " STR_FMT "%s", STR_ARG(format),
				STR_ARG(codec), eol);
	}
	if (direction && !has_direction(m))
		sbuf_printf(b, "a=" STR_FMT "%s", STR_ARG(sdp_dir_name(m->dir)), eol);
}
