/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The audio channel: RTP and RTCP of transcoded legs, from a worker to a codec thread and back. One
 * channel belongs to one worker and one codec thread. Packets in it are decrypted. Both rings are
 * bounded: packets that find no room are dropped and counted. */
#ifndef PACKET_AUDIO_H
#define PACKET_AUDIO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define AUDIO_PACKET_MAX 1500u
#define AUDIO_ENTRIES    1024u /* of each ring */
#define AUDIO_RESERVE    256u  /* the last ones of a ring are for emergency calls */
#define AUDIO_SHARE      24u   /* packets of one stream that may wait: 480 ms of 20 ms each */

struct audio_packet {
	uint64_t t_ns; /* arrival, CLOCK_REALTIME; to send: arrival of the packet that caused it */
	uint32_t stream;
	uint32_t serial; /* media_stream_cfg.audio; if that differs, the packet is dropped */
	uint16_t len;
	bool rtcp;
	bool emergency; /* received: of an emergency call */
	uint8_t bytes[AUDIO_PACKET_MAX];
};

/* Entries are used again as soon as they are free, the last one first: few of them are in use, and
 * stay in caches. */
struct audio_ring {
	struct audio_packet *entry; /* [AUDIO_ENTRIES] */
	/* Written by the producer. */
	uint16_t at[AUDIO_ENTRIES];         /* entry of each position */
	uint16_t free[AUDIO_ENTRIES];       /* a stack */
	uint32_t free_n, freed;             /* freed: position up to which entries are in free */
	_Alignas(64) _Atomic uint32_t head; /* written by the producer */
	_Alignas(64) _Atomic uint32_t tail; /* written by the consumer */
};

/* A stream's share of the ring, as in packet/side.h. Written by the worker only. */
struct audio_share {
	uint32_t until; /* position in the ring after its last packet */
	uint8_t n;
};

struct audio_channel {
	struct audio_ring in;  /* worker -> codec thread */
	struct audio_ring out; /* codec thread -> worker */
	/* eventfds, owned by the creator; -1 = nobody is woken (tests) */
	int thread_fd, worker_fd;
	_Atomic bool asleep; /* the codec thread waits for thread_fd, or is about to */
	/* Written by the worker, read by any thread. */
	_Atomic uint64_t stale; /* packets not sent: the stream is gone, or of another session */
	/* Written by the codec thread, read by any thread. */
	_Atomic uint64_t back_full; /* packets dropped because the ring to the worker was full */
	uint32_t pushed;            /* worker only: packets since the last audio_flush() */
	uint32_t given;             /* codec thread only: packets since it last woke the worker */
};

/* Allocates both rings. 0 or -ENOMEM. */
int audio_channel_init(struct audio_channel *c);
/* Wipes and frees both rings, because they had plaintext. Neither thread may use the channel
 * now. */
void audio_channel_fini(struct audio_channel *c);

/* Worker. Passes a packet to the codec thread, with head->len bytes at "from". 0; -ENOSPC: the ring
 * is full or the stream used up its share; -EMSGSIZE. */
int audio_take(struct audio_channel *c, struct audio_share *share, const struct audio_packet *head,
	const uint8_t *from);
/* Worker, after a burst: wakes the codec thread if it sleeps and packets wait. */
void audio_flush(struct audio_channel *c);
/* Worker. The next packet to send, valid until audio_sent(). NULL: none. */
const struct audio_packet *audio_next(const struct audio_channel *c);
/* Worker. Releases the packet of audio_next(). */
void audio_sent(struct audio_channel *c);

/* Codec thread. The next packet received, valid until audio_read_end(). NULL: none. */
const struct audio_packet *audio_read(const struct audio_channel *c);
/* Codec thread. The packet that is read after n others, valid until its own audio_read_end(). NULL:
 * not so many wait. */
const struct audio_packet *audio_peek(const struct audio_channel *c, uint32_t n);
/* Codec thread. Releases the packet of audio_read(). */
void audio_read_end(struct audio_channel *c);
/* Codec thread. Call it before sleeping. False: packets wait, so it must not sleep. */
bool audio_sleep(struct audio_channel *c);
/* Codec thread. A place for a packet to send, valid until audio_given(). NULL: the ring is full;
 * the packet is counted. The last places are reserved for emergency calls. */
struct audio_packet *audio_give(struct audio_channel *c, bool emergency);
/* Codec thread. Sends the packet of audio_give(), which is complete. */
void audio_given(struct audio_channel *c);
/* Codec thread, after one or more packets: wakes the worker. */
void audio_give_end(struct audio_channel *c);

#endif
