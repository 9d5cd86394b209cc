/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PROTO_SDP_JSEP_H
#define PROTO_SDP_JSEP_H

#include "proto/sdp.h"

/* Writes lines that JSEP demands of an m-line (RFC 8829 5.2.1, 5.3.1) and plain SDP omits:
 * a=rtpmap of static payload types (RFC 3551), and, if direction is set, the direction. Those that
 * are present are not repeated. webrtcbin and pion refuse m-lines without them. */
void sdp_jsep_write(struct sbuf *b, const struct sdp *s, const struct sdp_media *m, bool direction);

#endif
