/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of the ng protocol: framing (cookie, space, dictionary), and requests as one typed
 * struct. Both forms of flags and all spellings lead to the same struct. Pure. */
#ifndef PROTO_NG_H
#define PROTO_NG_H

#include "base/endpoint.h"
#include "proto/ng_errors.h"
#include "proto/ngval.h"
#include "proto/sdp_filter.h"
#include "srtp/suite.h"

/* --- Framing ----------------------------------------------------------------------------- */

enum ng_encoding { NG_BENCODE, NG_JSON };

/* Bounds the cookie in every reply. Kamailio's cookies have about 30 bytes; signed ones (ng_auth.h)
 * have 44 more. */
#define NG_COOKIE_MAX 255

/* Whether a cookie may contain this byte: printable ASCII, no blank. A reply begins with its
 * cookie, so no reply can be taken for RTP, RTCP or STUN. */
static inline bool ng_cookie_byte(char c)
{
	return c > 0x20 && c < 0x7f;
}

struct ng_frame {
	struct str cookie;
	struct str body;
	enum ng_encoding encoding;
};

/* 0. -ENOMSG: no cookie of 1 to NG_COOKIE_MAX ng_cookie_byte()s; drop the message without a reply.
 * -EPROTO: a cookie, but the body is neither bencode nor JSON ("Invalid NG data format"). -ENODATA:
 * a cookie without a body ("Invalid data (no payload)"). cookie is set with -EPROTO and -ENODATA.
 */
int ng_frame_parse(struct ng_frame *out, struct str datagram);

/* --- Requests ---------------------------------------------------------------------------- */

/* X(id, command) */
/* clang-format off */
#define NG_COMMANDS(X) \
	X(PING, "ping") \
	X(OFFER, "offer") \
	X(ANSWER, "answer") \
	X(DELETE, "delete") \
	X(QUERY, "query") \
	X(LIST, "list") \
	X(STATISTICS, "statistics") \
	X(PUBLISH, "publish") \
	X(SUBSCRIBE_REQUEST, "subscribe request") \
	X(SUBSCRIBE_ANSWER, "subscribe answer") \
	X(UNSUBSCRIBE, "unsubscribe") \
	X(SILENCE_MEDIA, "silence media") \
	X(UNSILENCE_MEDIA, "unsilence media") \
	X(BLOCK_MEDIA, "block media") \
	X(UNBLOCK_MEDIA, "unblock media") \
	X(BLOCK_DTMF, "block DTMF") \
	X(UNBLOCK_DTMF, "unblock DTMF") \
	X(VERIFY_SAS, "verify SAS") \
	X(UNVERIFY_SAS, "unverify SAS") \
	X(CONNECT, "connect") \
	X(START_RECORDING, "start recording") \
	X(PAUSE_RECORDING, "pause recording") \
	X(STOP_RECORDING, "stop recording") \
	X(ACTIVE, "active") \
	X(STANDBY, "standby") \
	X(CALLS, "calls") \
	X(EXPLAIN, "explain") \
	X(DEBUG, "debug") \
	X(LIMITS_COMMAND, "limits") \
	X(DRAIN, "drain") \
	X(LOG_LEVEL, "log level") \
	X(RELOAD, "reload") \
	X(CODECS, "codecs") \
	X(METRICS, "metrics") \
	X(PAGE, "page") \
	X(PAGE_HISTORY, "page history") \
	X(PLAY_MEDIA, "play media") \
	X(STOP_MEDIA, "stop media") \
	X(PLAY_DTMF, "play DTMF")
/* clang-format on */

enum ng_command {
	NG_NONE,
#define X(id, name) NG_##id,
	NG_COMMANDS(X)
#undef X
		NG_COMMAND_COUNT
};

#define NG_PTIME_MAX 120 /* ms */

/* Flags that change our behaviour. X(id, name). A table in ng_values.c has those that are accepted
 * without effect. */
/* clang-format off */
#define NG_FLAGS(X) \
	X(TRUST_ADDRESS, "trust-address") \
	X(SIP_SOURCE_ADDRESS, "SIP-source-address") \
	X(ASYMMETRIC, "asymmetric") \
	X(SYMMETRIC, "symmetric") \
	X(STRICT_SOURCE, "strict-source") \
	X(MEDIA_HANDOVER, "media-handover") \
	X(PORT_LATCHING, "port-latching") \
	X(NO_PORT_LATCHING, "no-port-latching") \
	X(RESET, "reset") \
	X(RECRYPT, "recrypt") \
	X(PASSTHROUGH, "passthrough") \
	X(LOOP_PROTECT, "loop-protect") \
	X(PAD_CRYPTO, "pad-crypto") \
	X(NO_RTCP_ATTRIBUTE, "no-rtcp-attribute") \
	X(FULL_RTCP_ATTRIBUTE, "full-rtcp-attribute") \
	X(FATAL, "fatal") \
	X(FAST, "fast") \
	X(TO_TAG, "to-tag") \
	X(FRAGMENT, "fragment") \
	X(DEBUG, "debug") \
	X(EMERGENCY, "emergency") \
	X(NAT_WAIT, "NAT-wait") \
	X(PIERCE_NAT, "pierce-NAT") \
	X(INACTIVE, "inactive") \
	X(RTCP_MIRROR, "rtcp-mirror") \
	X(GENERATE_MID, "generate-mid") \
	X(STRIP_EXTMAP, "strip-extmap") \
	X(SINGLE_CODEC, "single-codec") \
	X(ALLOW_NO_CODEC_MEDIA, "allow-no-codec-media") \
	X(ALWAYS_TRANSCODE, "always-transcode") \
	X(REUSE_CODECS, "reuse-codecs") \
	X(ASYMMETRIC_CODECS, "asymmetric-codecs") \
	X(BLOCK_DTMF, "block-DTMF") \
	X(DETECT_DTMF, "detect-DTMF") \
	X(EXCLUDE_RECORDING, "exclude-recording") \
	X(DIRECTIONAL, "directional") \
	X(ALLOW_RTP_ANSWER, "allow-RTP-answer") \
	X(ALL, "all") \
	X(PAUSE, "pause") \
	X(RECORD_CALL, "record-call") \
	X(DISCARD_RECORDING, "discard-recording") \
	X(NO_EARLY_MEDIA, "no-early-media") \
	X(SRTCP_TAG_32, "SRTCP-tag-32") \
	X(TRICKLE_ICE, "trickle-ICE") \
	X(REJECT_ICE, "reject-ICE") \
	X(NO_TLS_ID, "no-tls-id") \
	X(BLOCK_EGRESS, "block-egress")
/* clang-format on */

enum ng_flag {
#define X(id, name) NG_FLAG_##id,
	NG_FLAGS(X)
#undef X
		NG_FLAG_COUNT
};

/* clang-format off */
#define NG_REPLACES(X) \
	X(ORIGIN, "origin") \
	X(ORIGIN_FULL, "origin-full") \
	X(SESSION_NAME, "session-name") \
	X(SDP_VERSION, "SDP-version") \
	X(FORCE_INCREMENT, "force-increment-sdp-ver") \
	X(USERNAME, "username") \
	X(ZERO_ADDRESS, "zero-address")
/* clang-format on */

enum ng_replace {
#define X(id, name) NG_REPLACE_##id,
	NG_REPLACES(X)
#undef X
		NG_REPLACE_COUNT
};

/* Scope of blocking: all flows from a party together, or single flows. */
enum ng_all {
	NG_ALL_DEFAULT,
	NG_ALL_NONE,
	NG_ALL_ALL,
	NG_ALL_OFFER_ANSWER,
	NG_ALL_EXCEPT_OFFER_ANSWER,
	NG_ALL_FLOWS
};
enum ng_traffic { NG_TRAFFIC_AS_IT_IS, NG_TRAFFIC_DROP, NG_TRAFFIC_PASS };
enum ng_ice { NG_ICE_DEFAULT, NG_ICE_REMOVE, NG_ICE_FORCE, NG_ICE_FORCE_RELAY, NG_ICE_OPTIONAL };
/* ICE-lite: towards the receiver of the SDP, towards its sender. */
#define NG_ICE_LITE_FORWARD   0x1
#define NG_ICE_LITE_BACKWARDS 0x2
#define NG_ICE_LITE_OFF       0x4
enum ng_dtls { NG_DTLS_DEFAULT, NG_DTLS_OFF, NG_DTLS_PASSIVE, NG_DTLS_ACTIVE };
/* SRTP+, for the SDP's sender and its receiver. */
enum ng_preauth { NG_PREAUTH_DEFAULT, NG_PREAUTH_OFF, NG_PREAUTH_ACCEPT, NG_PREAUTH_OFFER };
/* Towards the receiver of the SDP, and for offers of its sender. */
enum ng_mikey { NG_MIKEY_DEFAULT, NG_MIKEY_OFF, NG_MIKEY_OFFER, NG_MIKEY_REQUIRE };
#define NG_MIKEY_MODES 5u
/* ZRTP with the receiver of the SDP. Of the first four at most one is set, and of the next two. */
#define NG_ZRTP_OFF         0x01  /* no ZRTP; a=zrtp-hash of the sender is not forwarded */
#define NG_ZRTP_PASSTHROUGH 0x02  /* between the terminals, where both legs speak RTP */
#define NG_ZRTP_TERMINATE   0x04  /* between the terminal and us */
#define NG_ZRTP_REQUIRE     0x08  /* the same, and never falls back to RTP in the clear */
#define NG_ZRTP_HOLD        0x10  /* no media before the keys */
#define NG_ZRTP_CLEAR       0x20  /* media in the clear before the keys */
#define NG_ZRTP_GOCLEAR     0x40  /* the terminal may end SRTP by GoClear */
#define NG_ZRTP_ENROL       0x80  /* ask the terminal to enrol with us */
#define NG_ZRTP_FALLBACK    0x100 /* media in the clear if the exchange fails; overrides others */
#define NG_ZRTP_MODES       0x0fu
#define NG_ZRTP_BEFORE      0x30u
enum ng_learning {
	NG_LEARN_DEFAULT,
	NG_LEARN_OFF,
	NG_LEARN_IMMEDIATE,
	NG_LEARN_DELAYED,
	NG_LEARN_HEURISTIC
};

/* RTP profile of an m-line, requested or found. */
#define NG_RTCP_MUX_OFFER   0x01
#define NG_RTCP_MUX_REQUIRE 0x02
#define NG_RTCP_MUX_DEMUX   0x04
#define NG_RTCP_MUX_ACCEPT  0x08
#define NG_RTCP_MUX_REJECT  0x10

#define NG_BUNDLE_OFFER  0x1
#define NG_BUNDLE_ACCEPT 0x2
#define NG_BUNDLE_STRICT 0x4 /* transport attributes in the tagged m-line only */
#define NG_BUNDLE_REJECT 0x8

#define NG_SDES_OFF                  0x001
#define NG_SDES_NONEW                0x002
#define NG_SDES_PAD                  0x004
#define NG_SDES_LIFETIME             0x008
#define NG_SDES_STATIC               0x010
#define NG_SDES_PREFER               0x020
#define NG_SDES_UNENCRYPTED_SRTP     0x040
#define NG_SDES_UNENCRYPTED_SRTCP    0x080
#define NG_SDES_UNAUTHENTICATED_SRTP 0x100

#define NG_TOS_DEFAULT (-1) /* the default */
#define NG_TOS_KEEP    (-2)

#define NG_LIMITS 4 /* of ng_request.max: sessions, cpu, load, bandwidth */

#define NG_OSRTP_OFFER  0x1
#define NG_OSRTP_ACCEPT 0x2
/* The form before RFC 8643: two m-lines for one media, of which the answer takes one. */
#define NG_OSRTP_OFFER_LEGACY  0x4
#define NG_OSRTP_ACCEPT_LEGACY 0x8
#define NG_OSRTP_OFF           0x10 /* neither offered nor accepted */

/* media-echo: the receiver of the SDP, its sender, or both get their own media back. */
#define NG_ECHO_FORWARD   1
#define NG_ECHO_BACKWARDS 2

struct ng_sdes {
	uint32_t flags; /* NG_SDES_* */
	uint32_t no;    /* bit per enum srtp_suite_id: no-SUITE */
	uint32_t only;  /* only-SUITE; takes precedence over no, unless 0 */
	bool require_given;
	uint32_t require; /* require:A;B;: the sender of the SDP must support one of these */
	uint8_t order[SUITE_COUNT];        /* order:A;B; as suite ids, SUITE_PLAIN ends the list */
	uint8_t offerer_pref[SUITE_COUNT]; /* offerer_pref:A;B */
};

#define NG_FROM_TAGS_MAX    16u
#define NG_MEDIA_REMOVE_MAX 8u

/* play media, play DTMF. Numbers: -1 = not given. */
struct ng_play {
	struct str file, blob, blob64, db_id, code;
	int64_t repeat_times, start_pos; /* start_pos in samples */
	int64_t repeat_ms;               /* repeat-duration */
	int64_t duration, pause;         /* ms */
	int64_t volume;                  /* dB below full scale, whatever its sign was */
};

/* DTMF-security: what replaces blocked digits. */
enum ng_dtmf_security {
	NG_DTMF_DEFAULT, /* not given */
	NG_DTMF_OFF,     /* digits are relayed */
	NG_DTMF_DROP,
	NG_DTMF_SILENCE,
	NG_DTMF_TONE,
	NG_DTMF_RANDOM,
	NG_DTMF_ZERO,
	NG_DTMF_DIGIT,
};
#define NG_DTMF_HZ_MIN 100
#define NG_DTMF_HZ_MAX 3400

struct ng_dtmf {
	enum ng_dtmf_security security;
	struct str trigger, end; /* digits that begin and end the blocking */
	int64_t end_digits;      /* end after so many digits; -1: not given */
	int64_t end_ms;          /* end after this time; -1: not given */
	int64_t hz;              /* of the tone; -1: not given */
};

struct ng_request {
	enum ng_command command;
	struct str command_text;
	struct str call_id, from_tag, to_tag, via_branch;
	struct str to_call_id; /* connect */
	/* status of the SIP reply that carried this SDP; 0 = a request, or unknown */
	uint16_t sip_code;
	struct str sdp;
	uint64_t flags;    /* bit per enum ng_flag */
	uint32_t replace;  /* bit per enum ng_replace */
	uint32_t rtcp_mux; /* NG_RTCP_MUX_* */
	uint32_t bundle;   /* NG_BUNDLE_* */
	uint32_t osrtp;    /* NG_OSRTP_* */
	struct ng_sdes sdes;
	enum ng_ice ice;
	uint8_t ice_lite;  /* NG_ICE_LITE_* */
	enum ng_dtls dtls; /* our role: an offer's */
	/* DTLS=NENA: the receiver of the SDP keys by DTLS-SRTP with AES-256, or not at all
	 * (NENA-STA-010.3 4.1.1). */
	bool nena;
	enum ng_mikey mikey;
	uint8_t mikey_mode[NG_MIKEY_MODES]; /* enum mikey_mode + 1, the preferred first; 0 = end */
	struct str mikey_peer; /* identity of the receiver of the SDP; empty = not given */
	struct str dtls_hash;  /* of our a=fingerprint, "sha-256"; empty = default */
	uint32_t zrtp;         /* NG_ZRTP_* */
	enum ng_preauth preauth;
	uint8_t preauth_scheme; /* 1 + enum preauth_scheme; 0 = the default */
	enum ng_learning learning;
	/* "RTP/SAVP" etc., canonical upper case; empty = as received */
	struct str transport;
	bool transport_accept;    /* answer: keep the profile of the answer */
	struct str direction[2];  /* from-interface, to-interface; empty = default */
	struct str received_from; /* address, if given */
	struct str media_address; /* forced address for SDP, if given */
	int address_family;       /* AF_INET, AF_INET6, 0 = unchanged */
	int tos;                  /* 0 to 255, or NG_TOS_* */
	int64_t delete_delay;     /* seconds; -1 = default */
	int64_t limit;            /* list: -1 = default */
	enum ng_traffic traffic;  /* of the whole call */
	uint8_t echo;             /* NG_ECHO_* */
	struct str media_remove
		[NG_MEDIA_REMOVE_MAX]; /* kinds of media that are removed from the offer */
	uint32_t media_removes;
	enum ng_all all; /* block media and similar */
	struct str label, to_label, set_label, metadata, address, recording_file, recording_pattern;
	struct endpoint callback; /* xmlrpc-callback: an address; family 0 = none */
	struct endpoint from;     /* the sender as known to control/; not from the message */
	/* Our own commands (xcipherctl) */
	struct str max[NG_LIMITS];    /* limits: in the format of the options; empty = unchanged */
	struct str state, level;      /* drain, debug: on, off; log level: a number */
	struct str part;              /* calls: part of a Call-ID, tag or name */
	struct str find, sort, after; /* calls, page: see call/find.h and struct calls_look */
	struct str show, ended;       /* page: see control/page.h */
	struct str from_tags
		[NG_FROM_TAGS_MAX]; /* subscribe request: the sources, in addition to from_tag */
	uint32_t from_tags_n;
	bool supports_load_limit;
	struct ng_play play;
	struct ng_dtmf dtmf;
	struct sdp_filter filter; /* keys "codec" and "sdp-attr" */
	/* ms of packets to the receiver of an offer, and to its sender; 0: not given */
	uint8_t ptime, ptime_reverse;
	/* Unknown flags and values, comma-separated, in the pool. The reply repeats them as a
	 * warning. */
	struct str warning;
};

/* Reads a request except for its SDP. 0; -ENOKEY: no command; -EOPNOTSUPP: unknown command
 * (command_text is set); -ENOMEM. Unknown keys are ignored. Unknown flags are collected in warning.
 */
int ng_request_parse(struct ng_request *out, struct pool *p, const struct ngval *msg);

/* Name of the first key whose text has a control character (str_has_control()), NULL if none. Texts
 * of a request appear in replies, logs, files and SDP. Does not check the SDP: sdp_parse() does,
 * and names the line. */
const char *ng_request_control(const struct ng_request *r);

/* Named sets of flags. template=NAME in a request includes them. The templates "default" and that
 * of the command apply before the request's own flags. */
struct ng_template {
	struct str name, flags;
};
struct ng_templates {
	const struct ng_template *one;
	size_t n;
};
/* The same with templates. NULL = none. */
int ng_request_parse_with(struct ng_request *out, struct pool *p, const struct ngval *msg,
	const struct ng_templates *templates);

/* Known words without effect. If why is set, the reply's warning repeats it. The manual lists the
 * same words. */
struct ng_known {
	const char *name;
	const char *why;
};
const struct ng_known *ng_known_words(size_t *n);
const struct ng_known *ng_known_keys(size_t *n);
const struct ng_known *ng_known_prefixes(size_t *n); /* a prefix, such as "codec-set-" */
const char *ng_key_name(size_t i);                   /* NULL after the last */

/* One line each, for logs, help and tests. */
const char *ng_command_name(enum ng_command c);
const char *ng_flag_name(enum ng_flag f);

static inline bool ng_flag(const struct ng_request *r, enum ng_flag f)
{
	return r->flags >> f & 1;
}

#endif
