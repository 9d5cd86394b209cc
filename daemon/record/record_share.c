/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record_share.h"

#include "base/clock.h"

bool record_bucket_may(struct record_bucket *b, uint32_t rate, uint64_t now_ns)
{
	uint64_t room = rate * NS_PER_SEC, passed = now_ns > b->at_ns ? now_ns - b->at_ns : 0;
	uint64_t drained = passed < NS_PER_SEC ? passed * rate : room;

	/* After the rate has fallen, at most one second of audio above the room has to drain. */
	if (b->used_ns > room + NS_PER_SEC)
		b->used_ns = room + NS_PER_SEC;
	b->used_ns = b->used_ns > drained ? b->used_ns - drained : 0;
	if (now_ns > b->at_ns)
		b->at_ns = now_ns;
	return b->used_ns < room;
}

void record_bucket_use(struct record_bucket *b, uint64_t audio_ns)
{
	b->used_ns += audio_ns;
}

uint32_t record_share_next(uint32_t rate, bool behind)
{
	rate = behind ? rate / 2 : rate + 1;
	if (rate < RECORD_SHARE_LEAST)
		return RECORD_SHARE_LEAST;
	return rate < RECORD_SHARE_MOST ? rate : RECORD_SHARE_MOST;
}
