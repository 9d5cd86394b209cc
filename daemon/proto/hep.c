/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HEP version 3: "HEP3", the length of all, then chunks of vendor (0), type, length and value.
 * Pure. */
#include "proto/hep.h"

#include <errno.h>
#include <inttypes.h>

enum {
	FAMILY = 1,
	PROTOCOL,
	SRC_V4,
	DST_V4,
	SRC_V6,
	DST_V6,
	SRC_PORT,
	DST_PORT,
	SECONDS,
	MICROSECONDS,
	KIND,
	CAPTURE_ID,
	PAYLOAD = 15,
	CORRELATION = 17,
	HEAD_LEN = 6,
};

struct writer {
	uint8_t *p;
	size_t len, cap;
	bool full;
};

static void chunk(struct writer *w, uint16_t type, const void *value, size_t len)
{
	if (w->full || len > UINT16_MAX - HEAD_LEN || HEAD_LEN + len > w->cap - w->len) {
		w->full = true;
		return;
	}
	put_be16(w->p + w->len, 0);
	put_be16(w->p + w->len + 2, type);
	put_be16(w->p + w->len + 4, (uint16_t)(HEAD_LEN + len));
	memcpy(w->p + w->len + HEAD_LEN, value, len);
	w->len += HEAD_LEN + len;
}

static void chunk8(struct writer *w, uint16_t type, uint8_t v)
{
	chunk(w, type, &v, 1);
}

static void chunk16(struct writer *w, uint16_t type, uint16_t v)
{
	uint8_t b[2];

	put_be16(b, v);
	chunk(w, type, b, sizeof(b));
}

static void chunk32(struct writer *w, uint16_t type, uint32_t v)
{
	uint8_t b[4];

	put_be32(b, v);
	chunk(w, type, b, sizeof(b));
}

int hep_write(uint8_t *out, size_t cap, const struct hep *h)
{
	struct writer w = {.p = out, .len = HEAD_LEN, .cap = cap};
	bool v6 = h->src.family == AF_INET6;

	if (h->src.family != h->dst.family || !h->src.family)
		return -EINVAL;
	if (cap < HEAD_LEN)
		return -EMSGSIZE;
	chunk8(&w, FAMILY, v6 ? 10 : 2); /* Linux's value on every platform */
	chunk8(&w, PROTOCOL, IPPROTO_UDP);
	chunk(&w, v6 ? SRC_V6 : SRC_V4, h->src.addr, v6 ? 16 : 4);
	chunk(&w, v6 ? DST_V6 : DST_V4, h->dst.addr, v6 ? 16 : 4);
	chunk16(&w, SRC_PORT, h->src.port);
	chunk16(&w, DST_PORT, h->dst.port);
	chunk32(&w, SECONDS, (uint32_t)(h->t_ns / 1000000000u));
	chunk32(&w, MICROSECONDS, (uint32_t)(h->t_ns % 1000000000u / 1000));
	chunk8(&w, KIND, h->kind);
	chunk32(&w, CAPTURE_ID, h->capture_id);
	if (h->correlation.len)
		chunk(&w, CORRELATION, h->correlation.s, h->correlation.len);
	chunk(&w, PAYLOAD, h->payload.s, h->payload.len);
	if (w.full || w.len > UINT16_MAX)
		return -EMSGSIZE;
	memcpy(out, "HEP3", 4);
	put_be16(out + 4, (uint16_t)w.len);
	return (int)w.len;
}

void hep_rtcp_json(struct sbuf *b, const struct rtcp_info *i)
{
	sbuf_printf(b, "{");
	if (i->sender)
		sbuf_printf(b,
			"\"sender_information\":{\"ntp_timestamp_sec\":%" PRIu32
			",\"ntp_timestamp_usec\":%" PRIu32 ",\"octets\":%" PRIu32
			",\"rtp_timestamp\":%" PRIu32 ",\"packets\":%" PRIu32 "},",
			(uint32_t)(i->ntp >> 32), (uint32_t)((i->ntp & UINT32_MAX) * 1000000 >> 32),
			i->octets, i->rtp, i->packets);
	sbuf_printf(b, "\"ssrc\":%" PRIu32 ",\"type\":%d,\"report_count\":%u,\"report_blocks\":[",
		i->ssrc, i->sender ? 200 : 201, i->blocks);
	for (uint8_t k = 0; k < i->blocks; k++) {
		const struct rtcp_block *r = &i->block[k];

		sbuf_printf(b,
			"%s{\"source_ssrc\":%" PRIu32 ",\"highest_seq_no\":%" PRIu32
			",\"fraction_lost\":%u,\"ia_jitter\":%" PRIu32 ",\"packets_lost\":%" PRId32
			",\"lsr\":%" PRIu32 ",\"dlsr\":%" PRIu32 "}",
			k ? "," : "", r->ssrc, r->highest, r->fraction, r->jitter, r->lost, r->lsr,
			r->dlsr);
	}
	sbuf_printf(b, "]}");
}
