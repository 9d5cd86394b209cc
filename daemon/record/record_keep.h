/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Retention: which recordings of a folder have to go. */
#ifndef RECORD_RECORD_KEEP_H
#define RECORD_RECORD_KEEP_H

#include "base/bytes.h"

/* Removes NAME.pcap and NAME.txt that are older than max_age_s, then the oldest while all of them
 * together are larger than max_bytes (0 = no limit). Files that were written to in the last minute
 * stay: they may be in use. Returns how many recordings went. Other files are not touched. */
uint32_t record_keep(const char *dir, uint64_t max_age_s, uint64_t max_bytes, uint64_t now_s);

#endif
