/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a stream can do: one row per field, and one column per place that must know the field. The
 * rows make the structs in media.h, so no field exists without its columns, and a row without a
 * column does not compile (tools/fields.sh).
 *
 * X(type, name, suffix, compared, fast, kernel, saved)
 *
 * compared: what makes the bridge send the field to the worker again (fields.c)
 *   BY_VALUE, BY_ENDPOINT, BY_CRYPTO   a value other than the one that was sent
 *   BY_EVENT   set: always
 *   FIXED      never: constant as long as the stream exists
 *   CARRIED    never by itself: sent with a change of another field
 *
 * fast: which values the fast path allows (fast_path.c); the result is one flag of the stream
 *   ANY, ZERO, SET (not zero), NAMED (not MEDIA_NONE), RTP_ZERO (of [rtcp] the first is zero)
 *   WAY         zero in one direction: way_set() in media.c
 *
 * kernel: where a nonzero value keeps a stream out of the kernel (bridge/offload_eligible.c)
 *   ANY         nowhere
 *   FLOW        part of the flow itself: offload_eligible.c looks at both ends of the flow
 *   NOT_FROM, NOT_FROM_TO, NOT_FROM_HEARER, NOT_HEARER
 *               in these roles: FROM, the stream that receives; TO, the stream that its packets
 *               leave by; HEARER, a listener's stream
 *   COPIES      only where the kernel makes copies, and not of SRTP that is passed through
 *
 * saved: the rows of persist/save_tables.c that bring the value back after a restart
 *   SAVED_CALL(row) SAVED_SIDE(row) SAVED_LEG(row), several of them without a comma
 *   NOT_SAVED   it is made again: a handle, a moment, or the same for all streams
 *
 * Tests read the columns: t/unit/test_fields.c. */
#ifndef MEDIA_FIELDS_H
#define MEDIA_FIELDS_H

/* clang-format off */
/* One direction's crypto of a media on one side. All its keys are of one crypto line (RFC 4568
 * 6.1): the same suite and session parameters, MKIs of the same length and all different. Plain:
 * all zeroes. Saved as part of the context's rows. */
#define CRYPTO_FIELDS(X) \
	X(enum srtp_suite_id, suite, , BY_VALUE, ANY, FLOW, NOT_SAVED) \
	/* number of keys; SUITE_PLAIN: 0. More than one only with an MKI */ \
	X(uint8_t, keys, , BY_VALUE, ANY, ANY, NOT_SAVED) \
	/* tx: the key to send under; rx: unused, as the packet names it */ \
	X(uint8_t, use, , BY_VALUE, ANY, ANY, NOT_SAVED) \
	/* 0 = no MKI */ \
	X(uint8_t, mki_len, , BY_VALUE, ZERO, ANY, NOT_SAVED) \
	/* UNENCRYPTED_SRTP */ \
	X(bool, clear_rtp, , BY_VALUE, ZERO, ANY, NOT_SAVED) \
	/* UNENCRYPTED_SRTCP: what we send; a received packet says so itself (E flag) */ \
	X(bool, clear_rtcp, , BY_VALUE, ANY, ANY, NOT_SAVED) \
	/* UNAUTHENTICATED_SRTP, as the slots were filled; not with AEAD suites */ \
	X(bool, no_rtp_auth, , BY_VALUE, ZERO, ANY, NOT_SAVED) \
	/* Passed through. rx: packets leave unchanged, to where tx has this too. Suite and keys \
	 * then serve recordings, listeners and the indexes, which are followed as far as possible \
	 * without authentication. tx: plain; nothing of ours is sent. */ \
	X(bool, pass, , BY_VALUE, ZERO, FLOW, NOT_SAVED) \
	/* Keys are not agreed yet: nothing is accepted or sent. The direction is plain until \
	 * then. */ \
	X(bool, awaited, , BY_VALUE, ZERO, FLOW, NOT_SAVED) \
	/* SRTP+ (tags.h): 0 = none, else 1 + enum preauth_scheme. Fast path: fast_path.h */ \
	X(uint8_t, preauth, , BY_VALUE, ZERO, ANY, NOT_SAVED) \
	/* its key, of the first master key: a slot that has a struct preauth_key */ \
	X(uint32_t, preauth_slot, , BY_VALUE, ANY, ANY, NOT_SAVED) \
	X(struct media_key, key, [MEDIA_KEYS], BY_VALUE, ANY, ANY, NOT_SAVED)

/* A context: a media of one side. */
#define CTX_FIELDS(X) \
	/* packets from this side's terminal */ \
	X(struct media_crypto, rx, , BY_CRYPTO, ANY, FLOW, \
		SAVED_LEG(RECORD_ROW("pr", leg, rx, params_record))) \
	/* packets to it */ \
	X(struct media_crypto, tx, , BY_CRYPTO, ANY, FLOW, \
		SAVED_LEG(RECORD_ROW("pt", leg, tx, params_record))) \
	/* A new crypto context: the ROC of each SSRC starts at "start", or 0. \
	 * False with the same keys, which are never reset. Also false when keys are added, \
	 * dropped or changed within the context. Such keys differ by MKI and share indexes \
	 * and windows ("the ROC MUST NOT be reset", RFC 3711 3.3.1). So each index is \
	 * received once and sent once, under any of the keys. \
	 * Protected indexes belong to the key, not to the context. They are kept with the \
	 * key's slot after the key leaves, or the context is deleted, until MEDIA_KEY_DEL. \
	 * They continue when the slot is used again, so the control thread keeps the slot as \
	 * long as the call may reuse the key. \
	 * tx_new requires keys that never sent, or whose indexes are kept. Otherwise the \
	 * command is refused, because another context sends under them. Our SRTCP index \
	 * always continues (RFC 3711 3.4). */ \
	X(bool, rx_new, , CARRIED, ANY, ANY, NOT_SAVED) \
	X(bool, tx_new, , CARRIED, ANY, ANY, NOT_SAVED) \
	/* Used where indexes are new (rx_new, tx_new, or a new context); ignored otherwise. */ \
	/* for SSRCs that are not listed; normally 0 */ \
	X(uint32_t, rx_roc, , CARRIED, ANY, ANY, NOT_SAVED) \
	X(uint32_t, tx_roc, , CARRIED, ANY, ANY, NOT_SAVED) \
	X(struct media_start, rx_start, [MEDIA_STARTS], CARRIED, ANY, ANY, NOT_SAVED) \
	X(struct media_start, tx_start, [MEDIA_STARTS], CARRIED, ANY, ANY, NOT_SAVED) \
	X(uint8_t, rx_starts, , CARRIED, ANY, ANY, NOT_SAVED) \
	X(uint8_t, tx_starts, , CARRIED, ANY, ANY, NOT_SAVED) \
	/* SRTCP's sent index is at least this, */ \
	X(uint32_t, tx_rtcp_index, , CARRIED, ANY, ANY, NOT_SAVED) \
	/* and at most media_rtcp_ceiling() since then (CLOCK_REALTIME); 0 = no limit */ \
	X(uint64_t, rtcp_from_ns, , CARRIED, ANY, ANY, \
		SAVED_CALL(NUM("born", call, created_ns, UINT64_MAX))) \
	/* SRTCP tags of 32 bits are accepted, and sent to the same terminal (short_tag.c) */ \
	X(bool, short_tags, , BY_VALUE, ANY, ANY, SAVED_CALL(FLAG("t32", call, short_tags))) \
	/* secret that renames the SSRCs of sent SRTP (rename.c); 0 = none. Random in each \
	 * process. */ \
	X(uint64_t, rename, , BY_VALUE, WAY, FLOW, NOT_SAVED) \
	/* SSRC of the leg's audio session: packets of others are not sent under it; 0 = none. \
	 * Nor are indexes above the ceiling. */ \
	X(uint32_t, own_ssrc, , BY_VALUE, WAY, ANY, SAVED_LEG(NUM("as", leg, audio.ssrc, UINT32_MAX))) \
	X(struct ceiling, ceiling, , BY_VALUE, ANY, ANY, NOT_SAVED)

/* A stream: a local port of a context. The fields before "tap" are needed for every packet
 * (media/state.h). */
#define STREAM_FIELDS(X) \
	X(struct local_port, local, , FIXED, ANY, FLOW, \
		SAVED_LEG(NUM("port", leg, port.rtp.port, 65534)) \
		SAVED_SIDE(FLAG("hl", side, has_local)) \
		SAVED_SIDE(LOCAL_ROW("local", side, local))) \
	/* its context */ \
	X(uint32_t, ctx, , BY_VALUE, ANY, FLOW, NOT_SAVED) \
	/* streams that send to the other side, or MEDIA_NONE */ \
	X(uint32_t, rtp_to, , BY_VALUE, NAMED, FLOW, NOT_SAVED) \
	X(uint32_t, rtcp_to, , BY_VALUE, ANY, FLOW, NOT_SAVED) \
	/* kinds of packets expected here: both with rtcp-mux */ \
	X(bool, rtp, , BY_VALUE, SET, FLOW, NOT_SAVED) \
	X(bool, rtcp, , BY_VALUE, ANY, FLOW, SAVED_LEG(FLAG("m", leg, mux))) \
	/* drop other sources after confirmation */ \
	X(bool, strict_source, , BY_VALUE, ANY, ANY, \
		SAVED_CALL(FLAG("ss", call, strict_source))) \
	/* dropped last on overload, see media_shed() */ \
	X(bool, emergency, , BY_VALUE, ANY, ANY, SAVED_SIDE(FLAG("em", side, emergency))) \
	X(uint8_t, tos, , BY_VALUE, ANY, ANY, SAVED_CALL(NUM("tos", call, tos, 255))) \
	/* MEDIA_GATE_* */ \
	X(uint8_t, gate, , BY_VALUE, ZERO, NOT_FROM_HEARER, \
		SAVED_CALL(NUM("gate", call, gate, 255)) \
		SAVED_SIDE(NUM("gate", side, gate, 255)) \
		SAVED_SIDE(BYTES_ROW("flow", side, flow))) \
	/* enum media_learning */ \
	X(uint8_t, learning, , BY_VALUE, ANY, ANY, \
		SAVED_CALL(NUM("learn", call, learning, MEDIA_LEARN_HEURISTIC))) \
	/* send nothing to this terminal before it sent a packet: media_stream.look */ \
	X(bool, wait, , BY_VALUE, ANY, NOT_HEARER, SAVED_SIDE(FLAG("nw", side, nat_wait))) \
	/* MEDIA_CONVERT()s: payload types whose packets leave for rtp_to in the other law of G.711, \
	 * or under another number. At most two, one in each half. See media_convert(). */ \
	X(uint32_t, convert, , BY_VALUE, ZERO, NOT_FROM, \
		SAVED_LEG(NUM("w0", leg, law[0], 128)) \
		SAVED_LEG(NUM("w1", leg, law[1], 128))) \
	/* recording of the packets received here, 0 = none */ \
	X(uint32_t, tap, , BY_VALUE, ANY, NOT_FROM, \
		SAVED_CALL(NUM("tap", call, tap, UINT32_MAX)) \
		SAVED_CALL(FLAG("tapa", call, tap_all)) \
		SAVED_CALL(FLAG("tapp", call, tap_paused)) \
		SAVED_SIDE(FLAG("nt", side, no_tap)) \
		SAVED_SIDE(FLAG("tap", side, tap))) \
	/* signalled address; family 0 or port 0 = none yet */ \
	X(struct endpoint, remote, , BY_ENDPOINT, ANY, ANY, \
		SAVED_LEG(ADDR_ROW("r", leg, remote)) \
		SAVED_LEG(ADDR_ROW("c", leg, rtcp_remote))) \
	/* another source may take over at any time */ \
	X(bool, media_handover, , BY_VALUE, ZERO, NOT_FROM_TO, \
		SAVED_SIDE(FLAG("ho", side, media_handover))) \
	/* never send to the source of packets */ \
	X(bool, asymmetric, , BY_VALUE, ZERO, ANY, SAVED_SIDE(FLAG("as", side, asymmetric))) \
	/* another terminal answered: start learning again */ \
	X(bool, relearn, , BY_EVENT, ANY, ANY, NOT_SAVED) \
	/* see copy */ \
	X(bool, listener, , BY_VALUE, ZERO, FLOW, SAVED_SIDE(FLAG("li", side, listener))) \
	/* First listener: stream handle + 1, by [rtcp]; in a listener's stream, the next \
	 * listener. 0 = none. Listeners get copies of the packets received here, under their \
	 * own keys. */ \
	X(uint32_t, copy, [2], BY_VALUE, RTP_ZERO, COPIES, \
		SAVED_LEG(FLAG("h", leg, hears)) \
		SAVED_LEG(NUM("hs", leg, hears_side, CALL_MAX_SIDES - 1)) \
		SAVED_LEG(NUM("hm", leg, hears_media, SDP_MAX_MEDIA - 1))) \
	/* bit per payload type: telephone events (RFC 4733), for gate */ \
	X(uint64_t, events, [2], BY_VALUE, ANY, ANY, \
		SAVED_LEG(NUM("e0", leg, events[0], UINT64_MAX)) \
		SAVED_LEG(NUM("e1", leg, events[1], UINT64_MAX))) \
	/* MEDIA_QUIET_*, for MEDIA_GATE_QUIET */ \
	X(uint8_t, quiet, , BY_VALUE, ANY, ANY, SAVED_LEG(NUM("q", leg, quiet, 255))) \
	/* RTCP feedback is dropped: the other side does not support it */ \
	X(bool, no_feedback, , BY_VALUE, ANY, ANY, SAVED_LEG(FLAG("fb", leg, feedback))) \
	/* enum raw_kind: packets other than RTP, relayed unchanged to rtp_to, a stream of the same \
	 * kind. Then neither rtp nor rtcp is set. */ \
	X(uint8_t, raw, , BY_VALUE, ZERO, NOT_FROM_TO, SAVED_LEG(NUM("p", leg, proto, 255))) \
	/* SIDE_BIT()s: such packets go to the keying thread, see packet/side.h. The kernel gives \
	 * them to the daemon. Its sessions are made again after a restart. */ \
	X(uint8_t, side, , BY_VALUE, ANY, ANY, NOT_SAVED) \
	/* of the session that has them; its packets carry the same number */ \
	X(uint32_t, side_serial, , BY_VALUE, ANY, ANY, NOT_SAVED) \
	/* Serial of the audio session that gets its RTP and RTCP (packet/audio.h); 0 = none. Its \
	 * sessions are made again after a restart. */ \
	X(uint32_t, audio, , BY_VALUE, ZERO, NOT_FROM_TO, NOT_SAVED) \
	/* not answered yet, see media_early_turn() */ \
	X(bool, early, , BY_VALUE, ZERO, NOT_FROM_TO, SAVED_LEG(FLAG("ea", leg, early))) \
	/* BUNDLE (RFC 9143, bundle.c): handle + 1 of the stream whose port, source and destination \
	 * this one uses; nothing is accepted at its own port. 0 = its own */ \
	X(uint32_t, via, , BY_VALUE, ZERO, NOT_FROM_TO, \
		SAVED_LEG(NUM("v", leg, via, SDP_MAX_MEDIA))) \
	/* ICE (checked.c): handle + 1 of the stream in use, for which this port also receives. \
	 * 0 = none */ \
	X(uint32_t, serves, , BY_VALUE, ZERO, NOT_FROM_TO, NOT_SAVED) \
	/* other m-lines share this stream's port: handle + 1 of the first; in their streams, \
	 * of the next */ \
	X(uint32_t, bundle, , BY_VALUE, ZERO, NOT_FROM_TO, NOT_SAVED) \
	/* MIDs may have to be written into packets to this terminal, or to that of rtp_to: its \
	 * m-lines are bundled, or it gets SSRCs of ours */ \
	X(bool, mids, , BY_VALUE, ZERO, NOT_FROM, NOT_SAVED) \
	/* ID of the header extension for the MID, 0 = none */ \
	X(uint8_t, mid_ext, , BY_VALUE, ANY, ANY, SAVED_LEG(NUM("me", leg, mid_ext, 255))) \
	/* the m-line's MID, zero-padded; and its payload types as a bit mask */ \
	X(char, mid, [RTP_MID_MAX], BY_VALUE, ANY, ANY, SAVED_LEG(BYTES_ROW("mi", leg, mid))) \
	X(uint64_t, types, [2], BY_VALUE, ANY, ANY, \
		SAVED_LEG(NUM("t0", leg, types[0], UINT64_MAX)) \
		SAVED_LEG(NUM("t1", leg, types[1], UINT64_MAX))) \
	/* SSRCs that the terminal's SDP names for the m-line (RFC 5576); 0 = none */ \
	X(uint32_t, ssrc, [RTP_SSRCS], BY_VALUE, ANY, ANY, \
		SAVED_LEG(NUM("r0", leg, ssrc[0], UINT32_MAX)) \
		SAVED_LEG(NUM("r1", leg, ssrc[1], UINT32_MAX)) \
		SAVED_LEG(NUM("r2", leg, ssrc[2], UINT32_MAX)))
/* clang-format on */

#endif
