/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signatures of ng: adds the time to requests, and drops replies that the daemon did not sign. */
#include <time.h>

#include <core/dprint.h>

#include "job.h"
#include "settings.h"

#define LOG_EVERY_MS 10000

struct wire_sign sign_now(void)
{
	return (struct wire_sign){.keys = settings.keys, .seconds = (uint64_t)time(NULL)};
}

bool reply_genuine(
	const char *node, const char *request, size_t request_len, const char *p, size_t len)
{
	static uint64_t silent_until; /* of this process */

	if (wire_genuine(settings.keys, (struct text){request, request_len}, p, len))
		return true;
	counter_inc(counters.forged_replies);
	if (now_ms() >= silent_until) {
		silent_until = now_ms() + LOG_EVERY_MS;
		LM_ERR("dropped a reply from %s: not signed by a key of ng_key_file; does the daemon's --ng-key-file hold the same key?\n",
			node);
	}
	return false;
}

bool job_genuine(const struct job *j, const char *p, size_t len)
{
	return reply_genuine(job_target(j)->id, j->msg, j->len, p, len);
}
