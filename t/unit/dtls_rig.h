/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two DTLS associations and a network between them. The network loses, repeats and reorders
 * packets as a table says; time is virtual. */
#ifndef DTLS_RIG_H
#define DTLS_RIG_H

#include "keying/dtls.h"
#include "keying/dtls_gate.h"

#define RIG_PACKETS 512

struct dtls_rig_packet {
	bool to_server;
	bool gone;
	size_t len;
	uint8_t p[DTLS_PACKET_MAX];
};

struct dtls_rig {
	uint64_t now_ns;
	struct dtls_cert *cert[2]; /* 0: client, 1: server */
	struct dtls_config config[2];
	struct dtls_counts counts[2];
	struct dtls *a[2];
	struct dtls_rig_packet sent[RIG_PACKETS]; /* everything that was ever sent, in order */
	size_t n, at;
	/* Copies of packet number i that arrive; 0 = lost. NULL: one copy of each. */
	unsigned (*fate)(struct dtls_rig *r, size_t i);
	bool backwards; /* waiting packets arrive in reverse order */
	unsigned seed, percent;
};

/* Creates certificates and default configurations: all profiles, no fingerprints. */
void dtls_rig_init(struct dtls_rig *r);
/* Creates both associations; each expects the other's certificate if expect is set. */
void dtls_rig_create(struct dtls_rig *r, bool expect);
void dtls_rig_fini(struct dtls_rig *r);
/* Runs until neither side has packets to deliver, nor a deadline before until_ns. */
void dtls_rig_run(struct dtls_rig *r, uint64_t until_ns);
/* Runs until both are open, or 60 virtual seconds have passed. */
void dtls_rig_handshake(struct dtls_rig *r);
/* Delivers every waiting packet once; no time passes. False: nothing waited. */
bool dtls_rig_deliver(struct dtls_rig *r);
void dtls_rig_expect(struct dtls_rig *r, int who, enum dtls_hash h, bool wrong);
bool dtls_rig_keys_agree(const struct dtls_rig *r, struct srtp_master *client_tx);
/* What gettimeofday() of dtls_rig_clock.h returns, in nanoseconds. */
uint64_t dtls_rig_wall_ns(void);
/* Sets the wall clock, which OpenSSL reads, back by this much; dtls_rig_init() undoes it. */
void dtls_rig_set_back(uint64_t ns);
/* Makes a fate that loses and repeats packets with these percentages, from this seed. */
unsigned dtls_rig_lossy(struct dtls_rig *r, size_t i);

#endif
