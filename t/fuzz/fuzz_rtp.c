/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets on a media port: parsers stay inside the packet, and their results agree with each
 * other. */
#include <stdlib.h>

#include "proto/raw.h"
#include "proto/rtp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of exactly this size, so that the sanitizer sees a byte too far. */
	uint8_t *p = malloc(size ? size : 1);
	struct rtp_hdr rtp;
	struct rtcp_hdr rtcp;
	enum pkt_kind kind;
	int hdr;

	if (!p)
		return 0;
	memcpy(p, data, size);
	kind = pkt_classify(p, size);
	hdr = rtp_parse(&rtp, p, size);
	if (hdr >= 0 &&
		((size_t)hdr > size || hdr < RTP_FIXED_LEN ||
			(kind != PKT_RTP && kind != PKT_RTCP)))
		abort();
	hdr = rtcp_parse(&rtcp, p, size);
	if (hdr >= 0 && ((size_t)hdr > size || (kind != PKT_RTP && kind != PKT_RTCP)))
		abort();
	/* No protocol accepts the first datagram of another, and none accepts RTP. */
	if (raw_opens(RAW_UDPTL, p, size) + raw_opens(RAW_DTLS, p, size) +
			raw_opens(RAW_BFCP, p, size) >
		(kind == PKT_RTP || kind == PKT_RTCP ? 0 : 1))
		abort();
	if (raw_opens(RAW_ANY, p, size) || raw_opens(RAW_NONE, p, size))
		abort();
	free(p);
	return 0;
}
