/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Debug lines of a call, one per stream. Contain no key. */
#ifndef CALL_TRACE_H
#define CALL_TRACE_H

#include "call/call.h"
#include "call/model.h"

struct call_trace { /* of a call that is debugged */
	struct str call_id, tag;
	uint32_t media; /* from 1 */
	bool rtcp;
	struct str text;
};

struct trace {
	void (*fn)(void *arg, const struct call_trace *line);
	void *arg;
};

/* Does nothing unless the call is debugged. */
void trace_call(const struct trace *t, const struct relay *relay, const struct call *c);

#endif
