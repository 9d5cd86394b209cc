/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Retention: selects the recordings of a folder to remove. */
#ifndef RECORD_RECORD_KEEP_H
#define RECORD_RECORD_KEEP_H

#include "base/bytes.h"

/* Removes recordings (NAME.pcap, NAME.txt, NAME-mix.wav, NAME-mix.opus, NAME-1.wav and so on) that
 * are older than max_age_s, then the oldest while the total size is above max_bytes (0 = no limit).
 * Keeps files written in the last minute, because they may be in use. Returns the number of removed
 * recordings. Does not touch other files. */
uint32_t record_keep(const char *dir, uint64_t max_age_s, uint64_t max_bytes, uint64_t now_s);

#endif
