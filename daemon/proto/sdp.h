/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Session descriptions (RFC 4566, RFC 8866): parsed into slices of the original text, and written
 * back with edits. Lines that we do not understand stay unchanged. Pure; everything lives in the
 * caller's pool. */
#ifndef PROTO_SDP_H
#define PROTO_SDP_H

#include "base/endpoint.h"
#include "base/pool.h"
#include "base/sbuf.h"

#define SDP_MAX_LEN   65535
#define SDP_MAX_MEDIA 64

/* clang-format off */
/* X(id, text) */
#define SDP_ERRORS(X) \
	X(NOMEM, "out of memory") \
	X(TOO_LONG, "body is too long") \
	X(NOT_SDP, "does not start with v=0") \
	X(LINE, "line is not of the form x=value") \
	X(CONTROL, "control character") \
	X(ORIGIN, "malformed o= line") \
	X(CONNECTION, "malformed c= line") \
	X(MEDIA, "malformed m= line") \
	X(MEDIA_COUNT, "too many m= lines") \
	X(NO_CONNECTION, "m= line without a c= line")
/* clang-format on */

enum sdp_err {
	SDP_OK,
#define X(id, text) SDP_ERR_##id,
	SDP_ERRORS(X)
#undef X
};
const char *sdp_err_text(enum sdp_err e);

enum sdp_proto {         /* of an m= line; RFC 3551, 3711, 4585, 5124, 5764 */
	SDP_PROTO_OTHER, /* unknown: the m-line is rejected */
	SDP_RTP_AVP,
	SDP_RTP_SAVP,
	SDP_RTP_AVPF,
	SDP_RTP_SAVPF,
	SDP_UDP_TLS_RTP_SAVP,
	SDP_UDP_TLS_RTP_SAVPF,
	/* Datagrams other than RTP. Records store these numbers: append new ones at the end. */
	SDP_UDPTL,         /* T.38 (RFC 7345 4 names it) */
	SDP_UDP_TLS_UDPTL, /* RFC 7345 */
	SDP_UDP_BFCP,      /* RFC 8856 */
	SDP_UDP_TLS_BFCP,
	SDP_UDP_DTLS_SCTP, /* RFC 8841 */
	SDP_UDP_OTHER,     /* "udp" (RFC 8866 5.14), and names with "UDP/" at the beginning */
	SDP_TCP, /* "TCP" (RFC 4145), and names with "TCP/" at the beginning: RFC 4975, 8856 */
};
const char *sdp_proto_name(enum sdp_proto p);   /* "" for SDP_PROTO_OTHER */
enum sdp_proto sdp_proto_find(struct str name); /* of RTP only; case-insensitive */
bool sdp_proto_is_rtp(enum sdp_proto p);
bool sdp_proto_is_raw(enum sdp_proto p); /* datagrams other than RTP */
/* Whether our ports relay it: RTP, or other datagrams. */
static inline bool sdp_proto_is_relayed(enum sdp_proto p)
{
	return sdp_proto_is_rtp(p) || sdp_proto_is_raw(p);
}
bool sdp_proto_is_secure(enum sdp_proto p);                /* SAVP and SAVPF with or without TLS */
bool sdp_proto_is_dtls(enum sdp_proto p);                  /* RTP keyed by DTLS (RFC 5764) */
bool sdp_proto_is_feedback(enum sdp_proto p);              /* AVPF and SAVPF */
enum sdp_proto sdp_proto_make(bool secure, bool feedback); /* one of the four RTP/... */

enum sdp_dir { SDP_DIR_SENDRECV, SDP_DIR_SENDONLY, SDP_DIR_RECVONLY, SDP_DIR_INACTIVE };
struct str sdp_dir_name(enum sdp_dir dir); /* "sendrecv" */
/* Whether this is a name in .invalid, which never exists (RFC 2606 2): a form of hold (RFC 6157
 * 3.1). */
bool sdp_is_invalid_name(struct str name);

struct sdp_line {
	struct str text;  /* the whole line without its line end */
	char type;        /* 'v', 'o', 'a', ... */
	struct str value; /* after "x=" */
	struct str name;  /* a= lines: attribute name */
	struct str arg;   /* a= lines: after the colon, empty if none */
	struct sdp_line *next;
};

struct sdp_conn {
	bool present;
	/* port 0; family 0 if it is a host name or of an unknown network type */
	struct endpoint addr;
	struct sdp_line *line;
};

struct sdp_media {
	struct sdp_line *lines; /* the m= line first */
	struct str kind;        /* "audio", "video", "application", ... */
	uint16_t port;
	uint16_t port_count; /* "port/count", normally 1 */
	struct str proto_text;
	enum sdp_proto proto;
	struct str formats; /* the rest of the m= line */
	/* its own, else the session's; present = false if both are missing (port 0 only) */
	struct sdp_conn conn;
	bool own_conn;
	bool hold; /* c= has no usable address: 0.0.0.0, :: or a name in .invalid, without ICE */
	enum sdp_dir dir; /* its own, else the session's; with hold it does not receive */
	bool rtcp_mux, rtcp_mux_only, ice, dtls; /* dtls: a=fingerprint here or at session level */
	bool has_rtcp;                           /* a=rtcp (RFC 3605) */
	struct endpoint rtcp; /* port, and address if given (otherwise family 0) */
	struct str mid, rid_label;
};

struct sdp {
	struct str body;
	struct sdp_line *session;                          /* lines before the first m= */
	struct str origin_user, origin_id, origin_version; /* of o= */
	struct endpoint origin_addr;
	struct str session_name;
	struct sdp_conn conn;
	struct sdp_media media[SDP_MAX_MEDIA];
	uint32_t media_count;
	bool crlf; /* line ends as found; mixed ends are written as CRLF */
};

/* *line (if not NULL) is the number of the bad line, from 1. An m-line with port 0 needs no c=
 * line. Control characters are refused everywhere: the bytes below 0x20 other than TAB, and 0x7f.
 * RFC 8866 9 forbids only NUL and bare CR. The others would reach logs and terminals. Bytes from
 * 0x80 are accepted: the text may be UTF-8 or in the charset of a=charset, and SDP parsers do not
 * treat U+0085 or U+2028 as line ends. NUL bytes after the last line are cut off. Empty lines are
 * removed. A malformed a=rtcp counts as absent. */
enum sdp_err sdp_parse(struct sdp *out, struct pool *p, struct str body, uint32_t *line);

/* --- Writing: the original, with these edits -------------------------------------------------- */

struct sdp_media_edit {
	bool keep;     /* not relayed: left unchanged, except for keys of other mechanisms */
	bool omit;     /* removed, including its m= line */
	bool reject;   /* port 0; address and crypto lines are removed */
	uint16_t port; /* RTP port */
	/* addresses of RTP and of a=rtcp; family 0: sdp_edit.addr */
	struct endpoint addr, rtcp_addr;
	uint16_t rtcp_port;   /* a=rtcp; 0 = none */
	bool rtcp_full;       /* a=rtcp with address */
	enum sdp_proto proto; /* an m-line other than RTP: unchanged */
	bool keep_dtls; /* keep DTLS attributes: the terminals do the handshake with each other */
	bool rtcp_mux;  /* write a=rtcp-mux */
	bool drop_rtcp_mux; /* remove any a=rtcp-mux, a=rtcp-mux-only */
	/* Attributes with keys to write, without "a=", such as "crypto:1 ..."; they replace all
	 * present a=crypto. */
	const struct str *keying;
	uint32_t keying_count;
	struct str lines;    /* whole lines of ours to add: ICE. None of a rejected m-line. */
	bool keep_feedback;  /* keep a=rtcp-fb and a=rtcp-rsize (RFC 5506 5), which AVP has not */
	uint32_t mid;        /* a=mid to write if there is none; 0 = none */
	struct str mid_text; /* the same as text, which goes first; s = NULL: none */
	bool drop_mid;       /* remove a=mid: another m-line already has that name */
	struct str formats;  /* replaces those of the m= line; s = NULL: unchanged */
	/* removes a=rtpmap, a=fmtp and a=rtcp-fb of these payload types, a bit each */
	uint64_t drop_types[2];
	bool drop_mid_ext; /* remove the m-line's a=extmap for the MID: only we offered it */
	/* remove a=extmap and a=rtcp-fb of transport-wide congestion control */
	bool drop_transport_cc;
	bool drop_sources;  /* remove a=ssrc and a=ssrc-group (RFC 5576) */
	bool drop_loopback; /* remove a=loopback, loopback-source and loopback-mirror (RFC 6849) */
	/* direction that replaces the present one, such as "sendonly"; s = NULL: unchanged */
	struct str direction;
	/* a second m-line for the same media, with these edits; NULL: none */
	const struct sdp_media_edit *twin;
	bool twin_first; /* write the second one before this one */
};

struct sdp_edit {
	struct endpoint addr; /* for c= lines, except for m-lines that are kept or have their own */
	bool replace_origin;  /* o= address */
	struct str origin_user;    /* s = NULL: unchanged */
	struct str origin_version; /* s = NULL: unchanged */
	struct str session_name;   /* s = NULL: unchanged */
	bool keep_zero_conn;       /* write hold by address (sdp_media.hold) as 0.0.0.0 or :: */
	bool remove_ice;           /* a=candidate, ice-*, end-of-candidates, remote-candidates */
	bool remove_dtls;          /* a=fingerprint, setup, tls-id, dtls-id, SDP_PREAUTH... */
	bool remove_bundle;        /* a=group:BUNDLE, bundle-only */
	struct str keying;         /* adds this attribute at session level, s = NULL: none */
	struct str loop_id;        /* adds a=xcipher:ID at session level, s = NULL: none */
	bool ice_lite;             /* adds a=ice-lite at session level */
	struct str bundle;         /* adds a=group:BUNDLE with this mid, s = NULL: none */
	const struct sdp_media_edit *media; /* [sdp.media_count] */
};

/* Writes the original with these edits. Unknown lines, their order and their spelling stay. Sets
 * sbuf's sticky error if out of memory. */
void sdp_write(struct sbuf *b, const struct sdp *s, const struct sdp_edit *e);

/* Name of a static payload type (RFC 3551 6) in the format of rtpmap. Empty for others. */
struct str sdp_static_codec(uint32_t type);
/* The first codec other than telephone events and comfort noise, in the format of a=rtpmap. Empty
 * if it is not among the first few. */
struct str sdp_first_codec(const struct sdp_media *m);

/* Whether a=group:BUNDLE names the m-line (RFC 9143). */
bool sdp_is_bundled(const struct sdp *s, const struct sdp_media *m);

/* First attribute of this name at media or session level; NULL if none. Iterate with from =
 * previous->next. */
const struct sdp_line *sdp_attr(const struct sdp_line *from, struct str name);

#endif
