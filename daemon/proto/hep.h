/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HEP version 3, the format of reports to Homer (the "HEP3 Network Protocol Specification" of
 * sipcapture.org). Pure. */
#ifndef PROTO_HEP_H
#define PROTO_HEP_H

#include "base/endpoint.h"
#include "base/sbuf.h"
#include "proto/rtcp.h"

#define HEP_RTCP_JSON 5 /* kind of payload */

struct hep {
	struct endpoint src, dst; /* both of the same family */
	uint64_t t_ns;            /* CLOCK_REALTIME */
	uint8_t kind;
	uint32_t capture_id;
	struct str correlation; /* Call-ID */
	struct str payload;
};

/* Returns the length, -EMSGSIZE, or -EINVAL for addresses of different families. */
int hep_write(uint8_t *out, size_t cap, const struct hep *h);
/* Writes a report in the JSON format of Homer's dissectors. */
void hep_rtcp_json(struct sbuf *b, const struct rtcp_info *i);

#endif
