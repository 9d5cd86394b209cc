/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One recording on disk: a pcap file of decrypted media and a text file about it. A full disk costs
 * what is recorded meanwhile and leaves a file that can be read. One thread only; may block. */
#ifndef RECORD_RECORD_FILE_H
#define RECORD_RECORD_FILE_H

#include "base/endpoint.h"
#include "call/recorder.h"

struct record_file;

enum record_format { RECORD_RAW, RECORD_ETH }; /* IP packets, or Ethernet frames around them */

/* Creates PATH.pcap and PATH.txt, which must not exist, for the owner alone. 0 or -errno. */
int record_file_open(struct record_file **out, const char *path, enum record_format format);
/* A datagram from a terminal to us. t_ns: CLOCK_REALTIME. 0, or -errno: it is not in the file. */
int record_file_packet(struct record_file *f, uint64_t t_ns, const struct endpoint *from,
	const struct endpoint *to, const uint8_t *payload, uint32_t len);
/* A line of the text file. */
void record_file_note(struct record_file *f, struct str line);
/* Writes out what is buffered: 0, or -errno and what was buffered is lost (counted). */
int record_file_flush(struct record_file *f);

struct record_counts {
	uint64_t packets, bytes, lost; /* lost: not written, whatever the reason */
};
void record_file_counts(const struct record_file *f, struct record_counts *out);
/* Packets that never reached us. */
/* It is in use: retention goes by the time of change. */
void record_file_touch(struct record_file *f);
void record_file_lost(struct record_file *f, uint64_t packets);
/* discard: both files go. */
void record_file_close(struct record_file *f, bool discard);

#endif
