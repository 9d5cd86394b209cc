/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SDP: never crashes, and what was written with edits can be read again and holds what the edits
 * say. The first byte of the input chooses the edits, the rest is the body. */
#include <stdlib.h>

#include "proto/sdp.h"
#include "proto/sdp_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static unsigned count(const struct sdp_line *l, struct str name)
{
	unsigned n = 0;

	for (l = sdp_attr(l, name); l; l = sdp_attr(l->next, name))
		n++;
	return n;
}

static void check_media(const struct sdp_media *old, const struct sdp_media *new,
	const struct sdp_media_edit *me, const struct sdp_edit *e)
{
	must(str_eq(old->kind, new->kind) && str_eq(old->formats, new->formats));
	if (me->keep) {
		must(old->port == new->port &&str_eq(old->proto_text, new->proto_text));
		must(!old->port || endpoint_addr_eq(&old->conn.addr, &new->conn.addr));
		return;
	}
	must(new->port == (me->reject ? 0 : me->port) && new->proto == me->proto);
	must(count(new->lines, STR("crypto")) == (me->reject ? 0 : me->keying_count));
	must(new->has_rtcp == (!me->reject && me->rtcp_port));
	must(!new->has_rtcp || new->rtcp.port == me->rtcp_port);
	must(!me->rtcp_mux || me->reject || new->rtcp_mux);
	must(me->reject || endpoint_addr_eq(&new->conn.addr, &e->addr));
	must(!e->remove_ice || !new->ice);
	must(!e->remove_dtls || !new->dtls);
}

/* The output stays well-formed, with the same number of media. */
static void try_filter(struct str written, uint32_t media, struct pool *p, uint8_t how)
{
	static const struct str names[] = {
		{"all", 3}, {"PCMA", 4}, {"opus", 4}, {"telephone-event", 15}};
	static struct sdp again;
	struct sdp_filter f = {.codecs = how & 0x20 ? 4 : 2, .attrs = 2};
	static const struct sdp_known known[] = {{{"PCMU/8000", 9}, 0, STR_NONE},
		{{"PCMA/8000", 9}, 8, STR_NONE}, {{"G722/8000", 9}, 9, STR_NONE},
		{{"opus/48000/2", 12}, -1, {"useinbandfec=1", 14}}};
	static struct sdp_codecs codecs;
	uint32_t emptied;
	struct str body;

	f.known = how & 0x80 ? known : NULL;
	f.knowns = how & 0x80 ? ARRAY_LEN(known) : 0;
	f.codec[0] = (struct sdp_codec_rule){
		how & 0x40 ? SDP_CODEC_MASK : SDP_CODEC_STRIP, names[how & 3]};
	f.codec[1] = (struct sdp_codec_rule){
		how & 4 ? SDP_CODEC_OFFER : SDP_CODEC_EXCEPT, names[how >> 3 & 3]};
	f.codec[2] = (struct sdp_codec_rule){SDP_CODEC_TRANSCODE, names[1]};
	f.codec[3] = (struct sdp_codec_rule){SDP_CODEC_ACCEPT, names[0]};
	f.attr[0] = (struct sdp_attr_rule){SDP_ATTR_REMOVE, STR("audio"), STR("ptime"), STR_NONE};
	f.attr[1] = (struct sdp_attr_rule){SDP_ATTR_ADD, STR("session"), STR("x:y"), STR_NONE};
	body = sdp_filter_apply(&f, p, written, &emptied);
	if (!body.s)
		return;
	must(sdp_parse(&again, p, body, NULL) == SDP_OK || body.len > SDP_MAX_LEN ||
		pool_failed(p));
	must(body.len > SDP_MAX_LEN || pool_failed(p) || again.media_count == media);
	for (uint32_t i = 0; i < again.media_count && body.len <= SDP_MAX_LEN; i++) {
		sdp_filter_codecs(&f, &again.media[i], &codecs);
		must(codecs.laws.theirs[0] <= 128 && codecs.laws.told[1] <= 128);
		must(codecs.theirs.n <= SDP_FORMATS && codecs.told.n <= SDP_FORMATS);
	}
}

static void try_edits(const struct sdp *s, struct pool *p, uint8_t how)
{
	static const struct str keys[] = {{"crypto:1 A inline:x", 19}, {"crypto:2 B inline:y", 19}};
	static struct sdp_media_edit me[SDP_MAX_MEDIA];
	static struct sdp again;
	struct sdp_edit e = {.addr = {.addr = {192, 0, 2, 1}, .family = AF_INET},
		.replace_origin = how & 1,
		.remove_ice = how & 2,
		.remove_dtls = how & 4,
		.media = me};
	struct sbuf b;

	for (uint32_t i = 0; i < s->media_count; i++)
		me[i] = (struct sdp_media_edit){.keep = how & 8 && i % 2,
			.reject = how & 16 && i % 3 == 2,
			.port = (uint16_t)(1000 + i),
			.rtcp_port = how & 32 ? 2000 : 0,
			.rtcp_full = how & 1,
			.proto = SDP_RTP_SAVP,
			.rtcp_mux = how & 64,
			.drop_rtcp_mux = how & 128,
			.keying = keys,
			.keying_count = 2};
	sbuf_init(&b, 0);
	sdp_write(&b, s, &e);
	if (!b.err && b.len <= SDP_MAX_LEN) {
		enum sdp_err err = sdp_parse(&again, p, sbuf_view(&b), NULL);

		must(err == SDP_OK || pool_failed(p));
		if (!err) {
			must(again.media_count == s->media_count);
			for (uint32_t i = 0; i < s->media_count; i++)
				check_media(&s->media[i], &again.media[i], &me[i], &e);
			try_filter(sbuf_view(&b), s->media_count, p, how);
		}
	}
	sbuf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct sdp s;
	struct pool *p;

	if (len == 0 || pool_create(&p, 16 << 20))
		return 0;
	if (sdp_parse(&s, p, (struct str){(const char *)data + 1, len - 1}, NULL) == SDP_OK)
		try_edits(&s, p, data[0]);
	pool_destroy(p);
	return 0;
}
