/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two sides of a call on one worker's tables, without the kernel and without an engine: terminals
 * that protect their packets, and a burst that goes through prepare, the scalar reference and
 * complete. */
#ifndef T_MEDIA_RIG_H
#define T_MEDIA_RIG_H

#include "media/state.h"
#include "packet/arena.h"

enum { SLOTS = 32, PORT_A = 30000, PORT_B = 30002, PORT_B_RTCP = 30003, A = 0, B = 1, B_RTCP = 2 };

/* Key slots: what the terminals send under and receive under. */
enum {
	A_TX = 2,
	A_RX = 4,
	B_TX = 6,
	B_RX = 8,
	A_TX2 = 10,
	LENT = 12,
	KEYS = LENT + 4 * 2 * MEDIA_EPOCHS
};

struct rig {
	struct media *m;
	struct arena a;
	struct packet_in in[SLOTS];
	struct packet_out out[SLOTS];
	uint32_t n, outs;
	uint32_t first; /* arena slot, and job, of the current burst */
	enum srtp_suite_id suite_a, suite_b;
	uint8_t mki_len;
	uint8_t kdr[LENT];    /* by key slot */
	uint32_t derivations; /* created by media */
	/* The serial engine, which copies keys, instead of the reference; NULL: the reference. */
	struct engine *engine;
	struct engine_queue *queue;
};

void rig_key(struct rig *r, uint32_t slot, enum srtp_suite_id suite);
/* The master key that rig_key() stores in this slot. */
struct srtp_master rig_master(uint32_t slot, enum srtp_suite_id suite);
/* Reports to media that the slot has a new key. With a kdr, the terminals derive their keys by it,
 * too. */
void rig_key_new(struct rig *r, uint32_t slot, uint8_t kdr, uint64_t lifetime);
struct media_crypto rig_crypto(const struct rig *r, uint32_t slot, enum srtp_suite_id suite);
struct rig_keys {
	uint32_t rx, tx; /* key slots */
	enum srtp_suite_id suite;
	bool rx_new, tx_new;
};
void rig_ctx(struct rig *r, uint32_t id, struct rig_keys keys);
/* Makes a context with RTP on both sides, which leaves its key slots free. */
void rig_ctx_plain(struct rig *r, uint32_t id);
struct media_cmd rig_stream_cmd(uint32_t id, uint16_t port, uint32_t c, uint32_t rtp_to,
	uint32_t rtcp_to, const char *remote);
void rig_stream(struct rig *r, struct media_cmd cmd);
/* Side A: RTP and RTCP on one port. Side B: two ports. */
struct rig *rig_new(enum srtp_suite_id suite_a, enum srtp_suite_id suite_b, uint8_t mki_len);
struct rig *rig_new_window(
	enum srtp_suite_id suite_a, enum srtp_suite_id suite_b, uint8_t mki_len, uint32_t window);
/* Allows several bursts in flight, of SLOTS / bursts packets each. */
struct rig *rig_new_bursts(enum srtp_suite_id suite_a, enum srtp_suite_id suite_b, uint32_t bursts);
/* The serial engine runs the jobs from now on. */
void rig_engine(struct rig *r);
void rig_free(struct rig *r);
/* A terminal's packet before it is protected. */
struct rig_plain {
	const uint8_t *packet;
	uint32_t len, hdr; /* bytes */
	uint32_t slot;     /* of its key */
	enum srtp_suite_id suite;
	uint64_t index;
	bool rtcp;
};
/* Protects it. Returns its length. */
uint32_t rig_protect(const struct rig *r, uint8_t *to, struct rig_plain plain);
/* Places a packet from this terminal to this local port in the burst. The caller sets its
 * length. */
uint8_t *rig_slot(struct rig *r, uint32_t from, uint16_t port);
void rig_plain_rtp(uint8_t p[172], uint32_t ssrc, uint64_t index);
void rig_plain_rtcp(uint8_t p[28], uint32_t ssrc, uint32_t number);
/* A's terminal sends the packet with this 48-bit index; returns its bytes in the arena, to be
 * damaged. */
uint8_t *rig_send(struct rig *r, uint32_t ssrc, uint64_t index, uint32_t slot);
uint8_t *rig_send_rtcp(struct rig *r, uint32_t ssrc, uint32_t index);
/* rig_prepare() runs the first half of the burst and returns the number of jobs; rig_complete()
 * runs the second. */
uint32_t rig_prepare(struct rig *r);
void rig_complete(struct rig *r, uint32_t jobs);
/* Both. */
void rig_run(struct rig *r);
/* Checks that the sent packet is, byte for byte, what B's terminal expects under its key with this
 * index. */
void rig_got(const struct rig *r, uint32_t k, uint32_t ssrc, uint64_t index, uint64_t tx_index);
uint64_t rig_dropped(const struct rig *r, uint32_t s, enum packet_verdict why);
/* Decrypts the packet sent at this place as B's terminal under this key slot: the plain RTP or RTCP
 * packet. Returns its length. */
uint32_t rig_open(
	const struct rig *r, uint32_t k, uint8_t *plain, uint32_t slot, uint64_t index, bool rtcp);
/* A copy of all contexts and streams, without prepare's scratch. *len: its bytes. */
void *rig_snapshot(const struct rig *r, size_t *len);

#endif
