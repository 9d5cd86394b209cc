/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports calls that time out to the SIP side, so that it can end its dialog: XML-RPC by HTTP POST,
 * like rtpengine's b2b-url. Works on the control thread's loop and never blocks it. */
#ifndef CONTROL_TEARDOWN_H
#define CONTROL_TEARDOWN_H

#include "base/loop.h"
#include "call/call.h"

struct teardown;

/* Numbers are those of rtpengine's xmlrpc-format. */
enum teardown_format {
	TEARDOWN_SEMS,     /* di(sbc, postControlCmd, TAG, teardown) for each tag */
	TEARDOWN_CALL_ID,  /* teardown(CALL-ID) */
	TEARDOWN_KAMAILIO, /* dlg.terminate_dlg(CALL-ID, FROM-TAG, TO-TAG) for each pair */
	TEARDOWN_FORMATS
};

struct teardown_config {
	struct loop *loop;
	struct calls *calls;
	const char *url; /* http or https; "%%" in it stands for an address */
	enum teardown_format format;
	/* Whether a host name in url may resolve to this address; NULL: any. */
	bool (*may_connect)(void *arg, const struct endpoint *e);
	void *may_connect_arg;
	uint64_t retry_ns;   /* pause before the second try, doubled before the third; 0: 1 s */
	uint64_t timeout_ns; /* per try; 0: 5 s */
};

/* The error in a URL for b2b-url, or NULL. */
const char *teardown_url_wrong(const char *url);

/* 0 or -errno. */
int teardown_create(struct teardown **out, const struct teardown_config *cfg);
/* Drops unsent reports. Call it before loop and calls end. NULL is fine. */
void teardown_destroy(struct teardown *t);

struct teardown_counters {
	/* confirmed by the other side, or its dialog had ended already */
	uint64_t told;
	uint64_t failed;  /* refused or unreachable after all tries */
	uint64_t dropped; /* dropped because the queue was full */
	uint64_t waiting;
};
struct teardown_counters teardown_counters(const struct teardown *t);

#endif
