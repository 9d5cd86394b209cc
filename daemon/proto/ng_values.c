/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interprets the words of an ng request: flags, values of keys, transport words. ng_keys.c maps all
 * spellings to these functions. Pure. */
#include "proto/ng_int.h"

#include <sys/socket.h>

const struct word_bit *ng_word_find(const struct word_bit *t, size_t n, struct str word)
{
	for (size_t i = 0; i < n; i++)
		if (ng_spelled_like(t[i].name, word))
			return &t[i];
	return NULL;
}

bool ng_word_add(uint32_t *bits, const struct word_bit *t, size_t n, struct str word)
{
	const struct word_bit *w = ng_word_find(t, n, word);

	*bits |= w ? w->bit : 0;
	return w != NULL;
}

struct str ng_rest_after(struct str a, struct str prefix)
{
	struct str head = {a.s, prefix.len};

	if (a.len <= prefix.len || !ng_spelled_like(head, prefix))
		return STR_NONE;
	return (struct str){a.s + prefix.len, a.len - prefix.len};
}

/* --- Keys with a handful of values --------------------------------------------------------- */

bool ng_set_osrtp(struct ng_parser *x, struct str value)
{
	static const struct word_bit t[] = {
		WORD("offer", NG_OSRTP_OFFER),
		WORD("offer-RFC", NG_OSRTP_OFFER),
		WORD("offer-legacy", NG_OSRTP_OFFER_LEGACY),
		WORD("accept", NG_OSRTP_ACCEPT | NG_OSRTP_ACCEPT_LEGACY),
		WORD("accept-RFC", NG_OSRTP_ACCEPT),
		WORD("accept-legacy", NG_OSRTP_ACCEPT_LEGACY),
		WORD("off", NG_OSRTP_OFF),
		WORD("no", NG_OSRTP_OFF),
		WORD("disable", NG_OSRTP_OFF),
		WORD("reject", NG_OSRTP_OFF),
	};

	return ADD_BITS(x->r->osrtp, t, value);
}

bool ng_set_rtcp_mux(struct ng_parser *x, struct str value)
{
	static const struct word_bit t[] = {
		WORD("offer", NG_RTCP_MUX_OFFER),
		WORD("require", NG_RTCP_MUX_REQUIRE),
		WORD("demux", NG_RTCP_MUX_DEMUX),
		WORD("accept", NG_RTCP_MUX_ACCEPT),
		WORD("reject", NG_RTCP_MUX_REJECT),
	};

	return ADD_BITS(x->r->rtcp_mux, t, value);
}

bool ng_set_bundle(struct ng_parser *x, struct str value)
{
	static const struct word_bit t[] = {
		WORD("offer", NG_BUNDLE_OFFER),
		WORD("require", NG_BUNDLE_OFFER),
		WORD("accept", NG_BUNDLE_ACCEPT),
		WORD("strict", NG_BUNDLE_STRICT),
		WORD("reject", NG_BUNDLE_REJECT),
	};

	return ADD_BITS(x->r->bundle, t, value);
}

bool ng_set_replace(struct ng_parser *x, struct str value)
{
	static const struct word_bit t[] = {
#define X(id, name) WORD(name, 1u << NG_REPLACE_##id),
		NG_REPLACES(X)
#undef X
		/* from versions that did not always rewrite c=; scripts still use it */
		WORD("session-connection", 0),
	};

	return ADD_BITS(x->r->replace, t, value);
}

bool ng_set_ice(struct ng_parser *x, struct str value)
{
	static const struct word_bit t[] = {
		WORD("default", NG_ICE_DEFAULT),
		WORD("remove", NG_ICE_REMOVE),
		WORD("force", NG_ICE_FORCE),
		WORD("force-relay", NG_ICE_FORCE_RELAY),
		WORD("optional", NG_ICE_OPTIONAL),
	};
	const struct word_bit *w = FIND(t, value);
	struct str lite = ng_rest_after(value, STR("lite-"));

	if (w)
		x->r->ice = (enum ng_ice)w->bit;
	else if (ng_spelled_like(value, STR("trickle")))
		x->r->flags |= 1ull << NG_FLAG_TRICKLE_ICE;
	else if (!ng_spelled_like(value, STR("ice2"))) /* RFC 8445 is what we speak */
		return lite.s && ng_set_ice_lite(x, lite);
	return true;
}

bool ng_set_ice_lite(struct ng_parser *x, struct str value)
{
	static const struct word_bit t[] = {
		WORD("forward", NG_ICE_LITE_FORWARD),
		WORD("backward", NG_ICE_LITE_BACKWARDS),
		WORD("backwards", NG_ICE_LITE_BACKWARDS),
		WORD("both", NG_ICE_LITE_FORWARD | NG_ICE_LITE_BACKWARDS),
		WORD("off", NG_ICE_LITE_OFF),
	};
	const struct word_bit *w = FIND(t, value);

	if (w)
		x->r->ice_lite = (uint8_t)w->bit;
	return w != NULL;
}

bool ng_set_dtls_fingerprint(struct ng_parser *x, struct str value)
{
	static const struct str names[] = {
		{"sha-1", 5}, {"sha-224", 7}, {"sha-256", 7}, {"sha-384", 7}, {"sha-512", 7}};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (ng_spelled_like(names[i], value)) {
			x->r->dtls_hash = names[i];
			return true;
		}
	return false;
}

bool ng_set_dtls(struct ng_parser *x, struct str value)
{
	static const struct word_bit t[] = {
		WORD("off", NG_DTLS_OFF),
		WORD("no", NG_DTLS_OFF),
		WORD("disable", NG_DTLS_OFF),
		WORD("passive", NG_DTLS_PASSIVE),
		WORD("active", NG_DTLS_ACTIVE),
	};
	const struct word_bit *w = FIND(t, value);

	if (ng_spelled_like(STR("NENA"), value)) {
		x->r->nena = true;
		return true;
	}
	if (w)
		x->r->dtls = (enum ng_dtls)w->bit;
	return w != NULL;
}

/* Modes have the numbers of keying/mikey.h, in its order, from 1. */
bool ng_set_mikey(struct ng_parser *x, struct str value)
{
	static const struct word_bit use[] = {
		WORD("off", NG_MIKEY_OFF),
		WORD("no", NG_MIKEY_OFF),
		WORD("disable", NG_MIKEY_OFF),
		WORD("offer", NG_MIKEY_OFFER),
		WORD("require", NG_MIKEY_REQUIRE),
	};
	static const struct word_bit mode[] = {
		WORD("psk", 1),
		WORD("pke", 2),
		WORD("dh", 3),
		WORD("dhhmac", 4),
		WORD("rsa-r", 5),
	};
	const struct word_bit *w = FIND(use, value);
	uint32_t n = 0;

	if (w) {
		x->r->mikey = (enum ng_mikey)w->bit;
		return true;
	}
	w = FIND(mode, value);
	while (w && n < NG_MIKEY_MODES && x->r->mikey_mode[n] != w->bit && x->r->mikey_mode[n])
		n++;
	if (w && n < NG_MIKEY_MODES)
		x->r->mikey_mode[n] = (uint8_t)w->bit;
	return w != NULL;
}

bool ng_set_learning(struct ng_parser *x, struct str value)
{
	static const struct word_bit t[] = {
		WORD("off", NG_LEARN_OFF),
		WORD("immediate", NG_LEARN_IMMEDIATE),
		WORD("delayed", NG_LEARN_DELAYED),
		WORD("heuristic", NG_LEARN_HEURISTIC),
	};
	const struct word_bit *w = FIND(t, value);

	if (w)
		x->r->learning = (enum ng_learning)w->bit;
	return w != NULL;
}

bool ng_set_family(struct ng_parser *x, struct str value)
{
	static const struct word_bit t[] = {WORD("IP4", AF_INET), WORD("IP6", AF_INET6)};
	const struct word_bit *w = FIND(t, value);

	if (w)
		x->r->address_family = (int)w->bit;
	return w != NULL;
}

bool ng_set_direction(struct ng_parser *x, struct str value)
{
	if (x->directions < ARRAY_LEN(x->r->direction))
		x->r->direction[x->directions++] = value;
	return true;
}

bool ng_set_traffic(struct ng_parser *x, struct str value)
{
	static const struct word_bit t[] = {
		WORD("start", NG_TRAFFIC_DROP), WORD("stop", NG_TRAFFIC_PASS)};
	const struct word_bit *w = FIND(t, value);

	if (w)
		x->r->traffic = (enum ng_traffic)w->bit;
	return w != NULL;
}

/* Media without any receiver count as blocked. */
bool ng_set_echo(struct ng_parser *x, struct str value)
{
	static const struct word_bit nobody[] = {WORD("blackhole", 0), WORD("sinkhole", 0)};
	static const struct word_bit t[] = {WORD("forward", NG_ECHO_FORWARD),
		WORD("fwd", NG_ECHO_FORWARD), WORD("fw", NG_ECHO_FORWARD),
		WORD("backwards", NG_ECHO_BACKWARDS), WORD("backward", NG_ECHO_BACKWARDS),
		WORD("reverse", NG_ECHO_BACKWARDS), WORD("back", NG_ECHO_BACKWARDS),
		WORD("bkw", NG_ECHO_BACKWARDS), WORD("bk", NG_ECHO_BACKWARDS),
		WORD("both", NG_ECHO_FORWARD | NG_ECHO_BACKWARDS)};
	const struct word_bit *w = FIND(t, value);

	if (w)
		x->r->echo = (uint8_t)w->bit;
	else if (FIND(nobody, value))
		x->r->traffic = NG_TRAFFIC_DROP;
	else
		return false;
	return true;
}

bool ng_set_media_remove(struct ng_parser *x, struct str value)
{
	struct ng_request *r = x->r;

	if (r->media_removes == ARRAY_LEN(r->media_remove))
		return false;
	r->media_remove[r->media_removes++] = value;
	return true;
}

bool ng_set_all(struct ng_parser *x, struct str value)
{
	static const struct word_bit t[] = {
		WORD("none", NG_ALL_NONE),
		WORD("all", NG_ALL_ALL),
		WORD("offer-answer", NG_ALL_OFFER_ANSWER),
		WORD("except-offer-answer", NG_ALL_EXCEPT_OFFER_ANSWER),
		WORD("flows", NG_ALL_FLOWS),
	};
	const struct word_bit *w = FIND(t, value);

	if (w)
		x->r->all = (enum ng_all)w->bit;
	if (w && w->bit == NG_ALL_ALL)
		x->r->flags |= 1ull << NG_FLAG_ALL;
	return w != NULL;
}

static bool is_off(struct str value)
{
	return ng_spelled_like(value, STR("off")) || ng_spelled_like(value, STR("no"));
}

bool ng_set_generate_rtcp(struct ng_parser *x, struct str value)
{
	return is_off(value) || ng_set_word(x, STR("generate-RTCP"));
}

bool ng_set_dtmf_security(struct ng_parser *x, struct str value)
{
	static const char *const names[] = {[NG_DTMF_OFF] = "off",
		[NG_DTMF_DROP] = "drop",
		[NG_DTMF_SILENCE] = "silence",
		[NG_DTMF_TONE] = "tone",
		[NG_DTMF_RANDOM] = "random",
		[NG_DTMF_ZERO] = "zero",
		[NG_DTMF_DIGIT] = "DTMF"};

	for (int i = NG_DTMF_OFF; i <= NG_DTMF_DIGIT; i++)
		if (ng_spelled_like(value, str_from(names[i]))) {
			x->r->dtmf.security = (enum ng_dtmf_security)i;
			return true;
		}
	ng_note(x, STR("DTMF-security"), "unknown mode: digits are dropped");
	x->r->dtmf.security = NG_DTMF_DROP;
	return true;
}

static bool set_ptime(uint8_t *field, struct str value)
{
	uint64_t ms;

	if (str_to_u64(&ms, value, NG_PTIME_MAX))
		return false;
	*field = (uint8_t)ms;
	return true;
}

bool ng_set_ptime(struct ng_parser *x, struct str value)
{
	return set_ptime(&x->r->ptime, value);
}

bool ng_set_ptime_reverse(struct ng_parser *x, struct str value)
{
	return set_ptime(&x->r->ptime_reverse, value);
}

bool ng_set_player(struct ng_parser *x, struct str value)
{
	if (!is_off(value) && !ng_spelled_like(value, STR("default")))
		ng_note(x, STR("audio-player"), "media use it only while something plays");
	return true;
}

/* The part of a message that would identify a party in addition to its tags. */
bool ng_set_alias_key(struct ng_parser *x, struct str value)
{
	if (!is_off(value) && !ng_spelled_like(value, STR("none")))
		ng_note(x, STR("alias-key"), "parties are known by their tags alone");
	return true;
}

/* --- Transport ----------------------------------------------------------------------------- */

#define TP_SECURE   0x01u /* set these ... */
#define TP_FEEDBACK 0x02u
#define TP_TLS      0x04u
#define TP_NO_SRTP  0x10u /* ... or clear them */
#define TP_NO_AVPF  0x20u
#define TP_ALL      (TP_NO_SRTP | TP_NO_AVPF)

static const struct word_bit transports[] = {
	WORD("RTP/AVP", TP_ALL),
	WORD("RTP/SAVP", TP_ALL | TP_SECURE),
	WORD("RTP/AVPF", TP_ALL | TP_FEEDBACK),
	WORD("RTP/SAVPF", TP_ALL | TP_SECURE | TP_FEEDBACK),
	WORD("UDP/TLS/RTP/SAVP", TP_ALL | TP_SECURE | TP_TLS),
	WORD("UDP/TLS/RTP/SAVPF", TP_ALL | TP_SECURE | TP_TLS | TP_FEEDBACK),
};
/* Single words add up: "SRTP AVPF" is RTP/SAVPF, "RTP AVP" is RTP/AVP. */
static const struct word_bit transport_words[] = {
	WORD("RTP", TP_NO_SRTP),
	WORD("SRTP", TP_SECURE),
	WORD("AVP", TP_NO_AVPF),
	WORD("AVPF", TP_FEEDBACK),
	WORD("SAVP", TP_SECURE | TP_NO_AVPF),
	WORD("SAVPF", TP_SECURE | TP_FEEDBACK),
	WORD("DTLS", TP_SECURE | TP_TLS),
	WORD("UDP", 0),
	WORD("TLS", TP_SECURE | TP_TLS),
};

static void apply_transport(struct ng_parser *x, uint32_t bits)
{
	x->secure = bits & TP_SECURE || (x->secure && !(bits & TP_NO_SRTP));
	x->tls = bits & TP_TLS || (x->tls && !(bits & TP_NO_SRTP));
	x->feedback = bits & TP_FEEDBACK || (x->feedback && !(bits & TP_NO_AVPF));
	x->r->transport = transports[x->tls ? 4 + x->feedback : x->secure + 2 * x->feedback].name;
}

bool ng_set_transport(struct ng_parser *x, struct str value)
{
	const struct word_bit *w = FIND(transports, value);

	if (w) {
		apply_transport(x, w->bit);
		return true;
	}
	if (ng_spelled_like(value, STR("accept"))) {
		x->r->transport = STR_NONE;
		x->r->transport_accept = true;
		return true;
	}
	return false;
}

/* --- Words that stand for themselves ------------------------------------------------------- */

/* Words of ng without an effect here. why == NULL: this relay does it anyway, or lacks the feature
 * and no caller would notice. Otherwise why goes into the reply's warning, for the script's author.
 * man/xcipher-ng.7 has a row for each; a test compares. */
static const struct ng_known words[] = {
	{"no-passthrough", NULL},
	{"unidirectional", NULL},
	{"original-sendrecv", NULL},
	{"bidirectional", NULL},
	{"generate-RTCP", "RTCP is generated for transcoded calls only"},
	{"new-branch", NULL},
	{"provisional", NULL},
	{"egress", NULL},
	{"siprec", NULL},
	{"no-redis-update", NULL},
	{"block-short", "short packets are relayed"},
	{"block-short-packets", "short packets are relayed"},
	{"force", NULL},
	{"force-answer", NULL},
	{"force-transcoding", "terminals with a common codec use it"},
	{"allow-transcoding", NULL},
	{"symmetric-codecs", NULL},
	{"static-codecs", NULL},
	{"no-reuse-codecs", NULL},
	{"no-jitter-buffer", NULL},
	{"skip-recording-db", NULL},
	{"recording-announcement", "announcements are not supported"},
	{"inject-DTMF", NULL}, /* play DTMF works without it */
	{"early-media", NULL},
};

/* Keys of the same kind. */
static const struct ng_known ignored_keys[] = {
	{"sip-message-type", NULL},
	{"rtpp-flags", NULL}, /* read on its own */
	{"T.38", "there is no fax gateway"},
	{"extmap", "header extensions are relayed"},
	{"repacketize", NULL},
	{"peer", "interfaces are chosen by name"},
	{"inbound-peer", "interfaces are chosen by name"},
	{"outbound-peer", "interfaces are chosen by name"},
	{"moh", "there is no music on hold"},
	{"recording-dir", "the directory is the daemon's option"},
	{"recording-path", "the directory is the daemon's option"},
	{"output-destination", NULL},
	{"DTLS-reverse", "the role of the answer follows from a=setup"},
	{"DTMF-delay", "digits are not delayed"},
	{"DTMF-log-dest", "digits are not reported to other programs"},
	{"delay-buffer", "no delay can be set"},
};

static const struct ng_known prefixes[] = {
	{"T.38-", "there is no fax gateway"},
	{"T38-", "there is no fax gateway"},
	{"extmap-", "header extensions are relayed"},
	{"DTMF-", "DTMF is relayed, blocked, or replaced by DTMF-security"},
	{"moh-", "there is no music on hold"},
	{"recording-", NULL},
};

const struct ng_known *ng_known_words(size_t *n)
{
	*n = ARRAY_LEN(words);
	return words;
}

const struct ng_known *ng_known_prefixes(size_t *n)
{
	*n = ARRAY_LEN(prefixes);
	return prefixes;
}

/* "word: why", once for each of the first few. */
void ng_note(struct ng_parser *x, struct str word, const char *why)
{
	if (x->notes++ >= NG_NOTES_MAX)
		return;
	x->note = pool_printf(x->p, STR_FMT "%s" STR_FMT ": %s", STR_ARG(x->note),
		x->note.len ? "; " : "", STR_ARG(word), why);
}

const struct ng_known *ng_known_keys(size_t *n)
{
	*n = ARRAY_LEN(ignored_keys);
	return ignored_keys;
}

bool ng_set_ignored_key(struct ng_parser *x, struct str key)
{
	for (size_t i = 0; i < ARRAY_LEN(ignored_keys); i++)
		if (ng_spelled_like(str_from(ignored_keys[i].name), key)) {
			if (ignored_keys[i].why)
				ng_note(x, str_from(ignored_keys[i].name), ignored_keys[i].why);
			return true;
		}
	return false;
}

static bool set_known(struct ng_parser *x, struct str word)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (ng_spelled_like(str_from(words[i].name), word)) {
			if (words[i].why)
				ng_note(x, str_from(words[i].name), words[i].why);
			return true;
		}
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (ng_rest_after(word, str_from(prefixes[i].name)).s) {
			struct str name = str_from(prefixes[i].name);

			name.len--;
			if (prefixes[i].why)
				ng_note(x, name, prefixes[i].why);
			return true;
		}
	return false;
}

static void set_webrtc(struct ng_parser *x)
{
	ng_set_transport(x, STR("UDP/TLS/RTP/SAVPF"));
	x->r->ice = NG_ICE_FORCE;
	x->r->rtcp_mux |= NG_RTCP_MUX_OFFER | NG_RTCP_MUX_REQUIRE;
	x->r->flags |= 1ull << NG_FLAG_NO_RTCP_ATTRIBUTE | 1ull << NG_FLAG_GENERATE_MID;
	x->r->sdes.flags |= NG_SDES_OFF;
}

bool ng_set_word(struct ng_parser *x, struct str word)
{
	static const struct word_bit flags[] = {
#define X(id, name) WORD(name, NG_FLAG_##id),
		NG_FLAGS(X)
#undef X
	};
	const struct word_bit *w = FIND(flags, word);

	if (w) {
		x->r->flags |= 1ull << w->bit;
		if (w->bit == NG_FLAG_PAD_CRYPTO)
			x->r->sdes.flags |= NG_SDES_PAD;
		if (w->bit == NG_FLAG_STRIP_EXTMAP)
			ng_strip_attr(x, STR("extmap"));
		return true;
	}
	w = FIND(transport_words, word);
	if (w) {
		apply_transport(x, w->bit);
		return true;
	}
	if (FIND(transports, word))
		return ng_set_transport(x, word);
	if (ng_spelled_like(word, STR("debugging")))
		return ng_set_word(x, STR("debug"));
	if (ng_spelled_like(word, STR("always-transcoding")))
		return ng_set_word(x, STR("always-transcode"));
	if (ng_spelled_like(word, STR("no-codec-renegotiation")))
		return ng_set_word(x, STR("reuse-codecs"));
	if (ng_spelled_like(word, STR("allow-asymmetric-codecs")))
		return ng_set_word(x, STR("asymmetric-codecs"));
	if (ng_spelled_like(word, STR("mirror-RTCP")))
		return ng_set_word(x, STR("rtcp-mirror"));
	if (ng_spelled_like(word, STR("WebRTC"))) {
		set_webrtc(x);
		return true;
	}
	/* old scripts name the interfaces of "direction" as bare words */
	if (ng_spelled_like(word, STR("internal")) || ng_spelled_like(word, STR("external")))
		return ng_set_direction(x, word);
	return set_known(x, word);
}
