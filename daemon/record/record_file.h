/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One recording on disk: a pcap file of decrypted media, and a text file that describes it. If the
 * disk is full, packets are lost, but the file remains readable. One thread only; may block. */
#ifndef RECORD_RECORD_FILE_H
#define RECORD_RECORD_FILE_H

#include "base/endpoint.h"
#include "call/recorder.h"

struct record_file;

enum record_format { RECORD_RAW, RECORD_ETH }; /* IP packets, or Ethernet frames with them */

/* Creates PATH.pcap and PATH.txt, which must not exist, readable by the owner only. 0 or -errno. */
int record_file_open(struct record_file **out, const char *path, enum record_format format);
/* Writes a datagram from a terminal to us. t_ns: CLOCK_REALTIME. 0, or -errno if it was not
 * written. */
int record_file_packet(struct record_file *f, uint64_t t_ns, const struct endpoint *from,
	const struct endpoint *to, const uint8_t *payload, uint32_t len);
/* Writes a line of the text file. */
void record_file_note(struct record_file *f, struct str line);
/* Flushes the buffer. 0, or -errno: its content is lost, and counted. */
int record_file_flush(struct record_file *f);

struct record_counts {
	uint64_t packets, bytes, lost; /* lost: not written, for any reason */
};
void record_file_counts(const struct record_file *f, struct record_counts *out);
/* Counts packets that never arrived. */
/* Updates the file's time, which retention reads. */
void record_file_touch(struct record_file *f);
void record_file_lost(struct record_file *f, uint64_t packets);
/* discard: removes both files. */
void record_file_close(struct record_file *f, bool discard);

#endif
