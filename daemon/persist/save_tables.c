/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts a call to bytes and back: bencoded dictionaries, described by the tables here. Zero
 * fields are omitted and unknown ones skipped, so tables may grow without a new version.
 * SAVE_VERSION changes when old readers would misread the data. Keys are short, because every call
 * has them. Worker handles are not stored: restore.c takes new ones. */
#include "persist/save_format.h"
#include "persist/save_rows.h"
#include "persist/save_tables.h"
#include "srtp/preauth.h"

/* Rows of the column "saved" of media/fields.h. Each table below defines which of SAVED_CALL,
 * SAVED_SIDE and SAVED_LEG are its own. */
#define SAVED_ROW(type, name, suffix, compared, fast, kernel, saved) saved
#define NOT_SAVED

static const struct field master_fields[] = {
	NUM("s", srtp_master, suite, SUITE_COUNT - 1),
	{"k", BYTES, AT(srtp_master, key)},
	{"a", BYTES, AT(srtp_master, salt)},
	{"m", BYTES, AT(srtp_master, mki)},
	NUM("n", srtp_master, mki_len, SUITE_MAX_MKI_LEN),
	NUM("r", srtp_master, kdr, SRTP_KDR_MAX),
	FLAG("u", srtp_master, no_rtp_auth),
	NUM("l", srtp_master, lifetime, ANY),
};
const struct record save_master = RECORD_OF(master_fields);

static const struct field sdes_fields[] = {
	NUM("t", sdes, tag, 999999999),
	{"k", RECORD, AT(sdes, master), .record = &save_master},
	NUM("m", sdes, more, SDES_MAX_KEYS - 1),
	NUM("o", sdes, more_at, 255),
	FLAG("r", sdes, unencrypted_srtp),
	FLAG("c", sdes, unencrypted_srtcp),
	NUM("q", sdes, preauth, PREAUTH_KINDS),
	FLAG("a", sdes, old_name),
	NUM("w", sdes, wsh, UINT32_MAX),
};
const struct record save_sdes = RECORD_OF(sdes_fields);

static const struct field bag_fields[] = {
	{"k", LIST, ONE(sdes_bag, master), .max = ARRAY_LEN(((struct sdes_bag *)0)->master),
		.record = &save_master, N(sdes_bag, n)},
};
const struct record save_bag = RECORD_OF(bag_fields);

static const struct field params_fields[] = {
	{"k", LIST, ONE(srtp_params, key), .max = SRTP_PARAMS_KEYS, .record = &save_master,
		N(srtp_params, keys)},
	FLAG("r", srtp_params, unencrypted_srtp),
	FLAG("c", srtp_params, unencrypted_srtcp),
	NUM("q", srtp_params, preauth, PREAUTH_KINDS),
	FLAG("p", srtp_params, pass),
	FLAG("w", srtp_params, awaited),
	RECORD_ROW("x", srtp_params, rtcp, save_master),
};
static const struct record params_record = RECORD_OF(params_fields);

static const struct field our_fields[] = {
	RECORD_ROW("k", sdes_key, key.master, save_master),
	FLAG("u", sdes_key, key.used),
	NUM("t", sdes_key, tag, 999999999),
	FLAG("r", sdes_key, unencrypted_srtp),
	FLAG("c", sdes_key, unencrypted_srtcp),
	NUM("q", sdes_key, preauth, PREAUTH_KINDS),
	FLAG("a", sdes_key, old_name),
};
static const struct record our_record = RECORD_OF(our_fields);

static const struct field keying_sdes_fields[] = {
	{"l", LIST, ONE(keying_sdes, line), .max = SDES_MAX_LINES, .record = &save_sdes,
		N(keying_sdes, lines)},
	RECORD_ROW("b", keying_sdes, bag, save_bag),
	BYTES_ROW("s", keying_sdes, suite),
	NUM("n", keying_sdes, suites, SUITE_COUNT),
	{"o", LIST, ONE(keying_sdes, ours), .max = SUITE_COUNT, .record = &our_record,
		N(keying_sdes, ours_n)},
	NUM("t", keying_sdes, tx_tag, 999999999),
	FLAG("a", keying_sdes, rx_old_name),
};
static const struct record keying_sdes_record = RECORD_OF(keying_sdes_fields);

static const struct field print_fields[] = {
	NUM("h", dtls_fingerprint, hash, DTLS_HASH_COUNT - 1),
	BYTES_ROW("v", dtls_fingerprint, value),
};
static const struct record print_record = RECORD_OF(print_fields);

static const struct field dtls_said_fields[] = {
	FLAG("g", keying_dtls_said, given),
	FLAG("l", keying_dtls_said, tls),
	NUM("s", keying_dtls_said, setup, DTLS_SETUP_HOLDCONN),
	NUM("i", keying_dtls_said, tls_id, ANY),
	NUM("t", keying_dtls_said, transport, ANY),
	NUM("q", keying_dtls_said, preauth, PREAUTH_KINDS),
	{"f", LIST, ONE(keying_dtls_said, prints.f), .max = DTLS_FINGERPRINTS,
		.record = &print_record, N(keying_dtls_said, prints.count)},
};
static const struct record dtls_said_record = RECORD_OF(dtls_said_fields);

static const struct field keying_dtls_fields[] = {
	RECORD_ROW("o", keying_dtls, offered, dtls_said_record),
	RECORD_ROW("f", keying_dtls, in_force, dtls_said_record),
	FLAG("a", keying_dtls, asked),
	NUM("s", keying_dtls, asked_setup, DTLS_SETUP_HOLDCONN),
	NUM("q", keying_dtls, asked_preauth, PREAUTH_KINDS),
	FLAG("p", keying_dtls, passive),
	NUM("r", keying_dtls, role, DTLS_ROLE_SERVER),
	NUM("n", keying_dtls, association, UINT32_MAX),
	NUM("u", keying_dtls, suites, UINT32_MAX),
	FLAG("e", keying_dtls, nena),
	NUM("c", keying_dtls, our_cert, ANY),
	NUM("d", keying_dtls, asked_cert, ANY),
	FLAG("w", keying_dtls, announced),
	BYTES_ROW("i", keying_dtls, our_id),
};
static const struct record keying_dtls_record = RECORD_OF(keying_dtls_fields);

static const struct field keying_preauth_fields[] = {
	NUM("o", keying_preauth, offered, PREAUTH_KINDS),
	NUM("a", keying_preauth, asked, PREAUTH_KINDS),
	NUM("f", keying_preauth, agreed, PREAUTH_KINDS),
};
static const struct record keying_preauth_record = RECORD_OF(keying_preauth_fields);

static const struct field keying_mikey_fields[] = {
	RECORD_ROW("q", keying_mikey, preauth, keying_preauth_record),
	NUM("m", keying_mikey, mode, 255),
	NUM("h", keying_mikey, used_hash, ANY),
	NUM("t", keying_mikey, used_time, ANY),
	BYTES_ROW("p", keying_mikey, peer),
};
static const struct record keying_mikey_record = RECORD_OF(keying_mikey_fields);

static const struct field sdp_zrtp_fields[] = {
	FLAG("g", sdp_zrtp, given),
	BYTES_ROW("h", sdp_zrtp, hash),
};
static const struct record sdp_zrtp_record = RECORD_OF(sdp_zrtp_fields);

static const struct field zrtp_secret_fields[] = {
	FLAG("k", zrtp_secret, known),
	NUM("h", zrtp_secret, hash, 255),
	NUM("c", zrtp_secret, cipher, 255),
	NUM("t", zrtp_secret, tag, 255),
	FLAG("p", zrtp_secret, passive),
	BYTES_ROW("s", zrtp_secret, sess),
	BYTES_ROW("z", zrtp_secret, zid),
	BYTES_ROW("i", zrtp_secret, h3),
	FLAG("w", zrtp_secret, with_keys),
	FLAG("n", zrtp_secret, initiator),
	FLAG("e", zrtp_secret, enrolled),
	FLAG("m", zrtp_secret, mitm),
	FLAG("cl", zrtp_secret, cleared),
	BYTES_ROW("mk", zrtp_secret, mac_key),
	BYTES_ROW("zk", zrtp_secret, key),
};
static const struct record zrtp_secret_record = RECORD_OF(zrtp_secret_fields);

static const struct field keying_zrtp_fields[] = {
	RECORD_ROW("o", keying_zrtp, offered, sdp_zrtp_record),
	FLAG("a", keying_zrtp, asked),
	FLAG("p", keying_zrtp, passed),
	NUM("f", keying_zrtp, flags, UINT32_MAX),
	NUM("su", keying_zrtp, suites, UINT32_MAX),
	RECORD_ROW("t", keying_zrtp, theirs, sdp_zrtp_record),
	NUM("tr", keying_zrtp, transport, ANY),
	NUM("n", keying_zrtp, exchange, UINT32_MAX),
	NUM("k", keying_zrtp, keyed, UINT32_MAX),
	BYTES_ROW("s", keying_zrtp, seed),
	FLAG("u", keying_zrtp, unused),
	BYTES_ROW("pa", keying_zrtp, party),
	BYTES_ROW("z", keying_zrtp, zid),
	FLAG("ps", keying_zrtp, preshared),
	BYTES_ROW("sas", keying_zrtp, sas),
	FLAG("v", keying_zrtp, verified),
	FLAG("mm", keying_zrtp, mismatched),
	FLAG("en", keying_zrtp, enrolled),
	FLAG("di", keying_zrtp, discloses),
	FLAG("pr", keying_zrtp, proven),
	NUM("sk", keying_zrtp, sas_kind, 255),
	BYTES_ROW("sh", keying_zrtp, sas_hash),
	BYTES_ROW("pz", keying_zrtp, peer_zid),
	FLAG("c", keying_zrtp, cleared),
	RECORD_ROW("x", keying_zrtp, secret, zrtp_secret_record),
	RECORD_ROW("xl", keying_zrtp, later, zrtp_secret_record),
	RECORD_ROW("q", keying_zrtp, preauth, keying_preauth_record),
};
static const struct record keying_zrtp_record = RECORD_OF(keying_zrtp_fields);

static const struct field keying_fields[] = {
	NUM("f", keying_state, in_force, KEYING_COUNT - 1),
	RECORD_ROW("s", keying_state, sdes, keying_sdes_record),
	FLAG("p", keying_state, pass.asked),
	RECORD_ROW("d", keying_state, dtls, keying_dtls_record),
	RECORD_ROW("m", keying_state, mikey, keying_mikey_record),
	RECORD_ROW("z", keying_state, zrtp, keying_zrtp_record),
};
static const struct record keying_record = RECORD_OF(keying_fields);

static const struct field ice_fields[] = {
	FLAG("s", leg_ice, said),
	FLAG("a", leg_ice, asked),
	FLAG("t", leg_ice, told),
	FLAG("o", leg_ice, on),
	FLAG("r", leg_ice, restart),
	FLAG("l", leg_ice, lite),
	FLAG("c", leg_ice, controlling),
	FLAG("b", leg_ice, lite_back),
	FLAG("w", leg_ice, wide),
	NUM("g", leg_ice, generation, 255),
	BYTES_ROW("u", leg_ice, ufrag),
	BYTES_ROW("p", leg_ice, pwd),
	BYTES_ROW("vu", leg_ice, prev_ufrag),
	BYTES_ROW("vp", leg_ice, prev_pwd),
	FLAG("rl", leg_ice, remote_lite),
	BYTES_ROW("ru", leg_ice, remote_ufrag),
	BYTES_ROW("rp", leg_ice, remote_pwd),
	FLAG("nl", leg_ice, next_lite),
	BYTES_ROW("nu", leg_ice, next_ufrag),
	BYTES_ROW("np", leg_ice, next_pwd),
	ADDR_ROW("p0", leg_ice, pair[0]),
	ADDR_ROW("p1", leg_ice, pair[1]),
	ADDR_ROW("n0", leg_ice, named[0]),
	ADDR_ROW("n1", leg_ice, named[1]),
};
static const struct record ice_record = RECORD_OF(ice_fields);

static const struct field said_fields[] = {
	FLAG("y", leg_said, relayed),
	FLAG("x", leg_said, rejected),
	FLAG("m", leg_said, mux),
	FLAG("f", leg_said, feedback),
	NUM("p", leg_said, proto, 255),
	NUM("d", leg_said, dir, SDP_DIR_INACTIVE),
	{"r", ADDR, AT(leg_said, remote)},
	{"c", ADDR, AT(leg_said, rtcp_remote)},
	FLAG("bu", leg_said, bundle),
	NUM("sh", leg_said, shares, SDP_MAX_MEDIA),
	NUM("me", leg_said, mid_ext, 255),
	NUM("t0", leg_said, types[0], ANY),
	NUM("t1", leg_said, types[1], ANY),
	NUM("r0", leg_said, ssrc[0], UINT32_MAX),
	NUM("r1", leg_said, ssrc[1], UINT32_MAX),
	NUM("r2", leg_said, ssrc[2], UINT32_MAX),
	BYTES_ROW("mi", leg_said, mid),
};
static const struct record said_record = RECORD_OF(said_fields);

static const struct field asked_fields[] = {
	FLAG("m", leg_asked, mux),
	NUM("p", leg_asked, proto, 255),
	FLAG("e", leg_asked, either),
	FLAG("sh", leg_asked, shares),
	NUM("me", leg_asked, mid_ext, 255),
	NUM("w0", leg_asked, laws.theirs[0], 128),
	NUM("w1", leg_asked, laws.theirs[1], 128),
	NUM("v0", leg_asked, laws.told[0], 128),
	NUM("v1", leg_asked, laws.told[1], 128),
	NUM("la", leg_asked, laws.accept, 3),
	FLAG("le", leg_asked, laws.engaged),
};
static const struct record asked_record = RECORD_OF(asked_fields);

static const struct field audio_fields[] = {
	NUM("cf", leg_audio, ceiling.from_ns, ANY),
	NUM("cu", leg_audio, ceiling.unit_ns, UINT32_MAX),
	NUM("c1", leg_audio, ceiling.first, UINT16_MAX),
	{"a", TEXT, AT(leg_audio, agreed)},
	{"w", TEXT, AT(leg_audio, theirs)},
	{"v", TEXT, AT(leg_audio, told)},
	FLAG("e", leg_audio, engaged),
	NUM("p", leg_audio, ptime, NG_PTIME_MAX),
	FLAG("r", leg_audio, resize),
	NUM("np", leg_audio, next_ptime, NG_PTIME_MAX),
	FLAG("nr", leg_audio, next_resize),
};
static const struct record audio_record = RECORD_OF(audio_fields);

static const struct field local_fields[] = {
	LOCAL_ROW("a", relay_port, rtp.addr),
	NUM("p", relay_port, rtp.port, 65534),
};
static const struct record local_record = RECORD_OF(local_fields);

#define SAVED_CALL(...)
#define SAVED_SIDE(...)
#define SAVED_LEG(...) __VA_ARGS__,
static const struct field leg_fields[] = {FLAG("u", leg, used), FLAG("a", leg, active),
	NUM("rp", leg, rtp_proto, 255), NUM("dk", leg, keyed, UINT32_MAX),
	NUM("d", leg, dir, SDP_DIR_INACTIVE), {"k", BYTES, AT(leg, kind)},
	{"cd", BYTES, AT(leg, codec)}, {"key", RECORD, AT(leg, keying), .record = &keying_record},
	{"ice", RECORD, AT(leg, ice), .record = &ice_record},
	{"lo", LIST, ONE(leg, locals.port), .max = LEG_LOCALS, .record = &local_record,
		N(leg, locals.n)},
	NUM("l0", leg, locals.at[0], LEG_LOCALS - 1), NUM("l1", leg, locals.at[1], LEG_LOCALS - 1),
	{"au", RECORD, AT(leg, audio), .record = &audio_record},
	{"said", RECORD, AT(leg, said), .record = &said_record},
	{"ask", RECORD, AT(leg, asked), .record = &asked_record},
	CTX_FIELDS(SAVED_ROW) STREAM_FIELDS(SAVED_ROW)};
#undef SAVED_CALL
#undef SAVED_SIDE
#undef SAVED_LEG
static const struct record leg_record = RECORD_OF(leg_fields);

static const struct field limits_fields[] = {
	NUM("f", ng_sdes, flags, UINT32_MAX),
	NUM("n", ng_sdes, no, UINT32_MAX),
	NUM("y", ng_sdes, only, UINT32_MAX),
	{"o", BYTES, AT(ng_sdes, order)},
	{"p", BYTES, AT(ng_sdes, offerer_pref)},
};
static const struct record limits_record = RECORD_OF(limits_fields);

#define SAVED_CALL(...)
#define SAVED_SIDE(...) __VA_ARGS__,
#define SAVED_LEG(...)
static const struct field side_fields[] = {FLAG("gone", side, gone), {"tag", TEXT, AT(side, tag)},
	{"branch", TEXT, AT(side, via_branch)}, {"label", TEXT, AT(side, label)},
	{"alias", TEXTS, ONE(side, alias), .max = CALL_MAX_ALIASES, N(side, aliases)},
	NUM("peer", side, peer, SIDE_NONE), FLAG("fin", side, settled), FLAG("wt", side, parked),
	FLAG("cn", side, connected), NUM("born", side, created_ns, ANY),
	NUM("sig", side, signal_ns, ANY), FLAG("ans", side, answered), FLAG("early", side, early),
	{"src", ADDR, AT(side, source)}, FLAG("pi", side, pierce), FLAG("ec", side, echo),
	FLAG("rb", side, rtcp_back), FLAG("pu", side, publisher), {"sdp", TEXT, AT(side, sdp)},
	NUM("mf", side, mux_flags, UINT32_MAX), NUM("os", side, osrtp, UINT32_MAX),
	FLAG("open", side, offer_open), NUM("wp", side, wanted.proto, SDP_UDP_TLS_RTP_SAVPF),
	{"wl", RECORD, AT(side, wanted.limits), .record = &limits_record},
	NUM("wo", side, wanted.osrtp, UINT32_MAX), NUM("wm", side, wanted.mux, UINT32_MAX),
	NUM("wz", side, wanted.zrtp, UINT32_MAX), NUM("hid", side, hidden, ANY),
	NUM("dm", side, dtmf.cover.mode, AUDIO_COVER_MODES - 1),
	NUM("dd", side, dtmf.cover.digit, 15), NUM("dv", side, dtmf.cover.volume, 63),
	FLAG("dl", side, dtmf.cover.listen), NUM("dh", side, dtmf.cover.hz, 4000),
	BYTES_ROW("dt", side, dtmf.trigger), BYTES_ROW("de", side, dtmf.end),
	NUM("dn", side, dtmf.end_digits, 255), NUM("ds", side, dtmf.end_ms, UINT32_MAX),
	FLAG("db", side, dtmf.begun), NUM("dg", side, dtmf.digits, 255),
	NUM("di", side, dtmf.since_ns, ANY), NUM("dbl", side, doubled, ANY),
	NUM("pf", side, plain_first, ANY), NUM("ov", side, out_version, ANY),
	NUM("oh", side, out_hash, ANY), {"legs", LEGS, AT(side, leg), .record = &leg_record},
	CTX_FIELDS(SAVED_ROW) STREAM_FIELDS(SAVED_ROW)};
#undef SAVED_CALL
#undef SAVED_SIDE
#undef SAVED_LEG
static const struct record side_record = RECORD_OF(side_fields);

#define SAVED_CALL(...) __VA_ARGS__,
#define SAVED_SIDE(...)
#define SAVED_LEG(...)
static const struct field call_fields[] = {{"id", TEXT, AT(call, id)},
	{"meta", TEXT, AT(call, metadata)}, FLAG("debug", call, debug),
	NUM("sig", call, signal_ns, ANY), NUM("del", call, delete_ns, ANY),
	FLAG("ans", call, answered), FLAG("early", call, early),
	NUM("anst", call, answered_ns, ANY), FLAG("em", call, emergency),
	{"ma", ADDR, AT(call, media_address)}, {"told", ADDR, AT(call, told)},
	{"from", ADDR, AT(call, asked_from)}, FLAG("tapd", call, tap_discard),
	NUM("tapn", call, tap_parts, RECORD_PARTS_MAX), {"tapf", TEXT, AT(call, tap_path)},
	NUM("rev", call, save.revision, ANY),
	{"sides", SIDES, AT(call, side), .record = &side_record},
	CTX_FIELDS(SAVED_ROW) STREAM_FIELDS(SAVED_ROW)};
#undef SAVED_CALL
#undef SAVED_SIDE
#undef SAVED_LEG
const struct record save_call = RECORD_OF(call_fields);

static const struct field use_fields[] = {
	NUM("r", save_key_use, rtp, ANY),
	NUM("c", save_key_use, rtcp, ANY),
};
static const struct record use_record = RECORD_OF(use_fields);

static const struct field mark_fields[] = {
	NUM("s", save_mark, ssrc, UINT32_MAX),
	NUM("t", save_mark, table, MEDIA_TABLES - 1),
	NUM("i", save_mark, index, (1ull << 48) - 1),
	FLAG("o", save_mark, roc_only),
	NUM("p", save_mark, per_s, UINT32_MAX),
};
static const struct record mark_record = RECORD_OF(mark_fields);

static const struct field counts_fields[] = {
	NUM("p", stream_counts, packets, ANY),
	NUM("b", stream_counts, bytes, ANY),
	NUM("e", stream_counts, errors, ANY),
	NUM("q", stream_counts, packets_out, ANY),
	NUM("c", stream_counts, bytes_out, ANY),
	NUM("l", stream_counts, last_packet_ns, ANY),
	NUM("z", stream_counts, others[MEDIA_OTHER_ZRTP], ANY),
	NUM("zd", stream_counts, others[MEDIA_OTHER_ZRTP_DONE], ANY),
	NUM("dt", stream_counts, others[MEDIA_OTHER_DTLS], ANY),
	NUM("st", stream_counts, others[MEDIA_OTHER_STUN], ANY),
};
static const struct record counts_record = RECORD_OF(counts_fields);

static const struct field leg_state_fields[] = {
	NUM("s", leg_state, side, CALL_MAX_SIDES - 1),
	NUM("m", leg_state, media, SDP_MAX_MEDIA - 1),
	NUM("x", leg_state, tx_rtcp_next, 1ull << 31),
	{"k", LIST, ONE(leg_state, mark), .max = MEDIA_MARKS_MAX, .record = &mark_record,
		N(leg_state, marks)},
	{"r", ADDR, AT(leg_state, remote)},
	{"c", ADDR, AT(leg_state, rtcp_remote)},
	FLAG("f", leg_state, confirmed),
	FLAG("g", leg_state, rtcp_confirmed),
	{"n0", RECORD, AT(leg_state, counts[0]), .record = &counts_record},
	{"n1", RECORD, AT(leg_state, counts[1]), .record = &counts_record},
	{"u0", RECORD, AT(leg_state, rx_use[0]), .record = &use_record},
	{"u1", RECORD, AT(leg_state, rx_use[1]), .record = &use_record},
	{"u2", RECORD, AT(leg_state, rx_use[2]), .record = &use_record},
	{"u3", RECORD, AT(leg_state, rx_use[3]), .record = &use_record},
	{"ut", RECORD, AT(leg_state, tx_use), .record = &use_record},
};
const struct record save_leg_state = RECORD_OF(leg_state_fields);

/* legs and leg are handled by code: they are in the pool. */
static const struct field state_fields[] = {
	NUM("born", call_state, created_ns, ANY),
	NUM("rev", call_state, revision, ANY),
	NUM("at", call_state, at_ns, ANY),
	NUM("real", call_state, real_ns, ANY),
	NUM("mono", call_state, mono_ns, ANY),
	NUM("boot", call_state, boot, ANY),
};
const struct record save_state = RECORD_OF(state_fields);
