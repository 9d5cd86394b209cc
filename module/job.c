/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides when a request is retried, when the next node is tried, and when to give up. A node gets
 * the same cookie 1 + retries times, timeout apart: daemons answer a repeated cookie from their
 * cache. The next node is tried after silence, an ICMP error or "load limit". For existing calls it
 * is also tried after "unknown call". */
#include "job.h"

#include <stddef.h>

#include "settings.h"

static const char *const NAMES[OP_COUNT] = {"offer", "answer", "delete", "query", "start recording",
	"stop recording", "publish", "fragment"};

const char *op_name(enum op op)
{
	return NAMES[op];
}

enum step job_start(struct job *j, struct text call_id, bool emergency)
{
	int most = settings.max_nodes < TRIES_MAX ? settings.max_nodes : TRIES_MAX;

	if (!j->pinned)
		j->targets = nodes_choose(
			j->target, emergency ? TRIES_MAX : most, call_id, j->set, emergency);
	j->at = j->sent = 0;
	counter_inc(counters.requests);
	return j->targets ? STEP_SEND : STEP_DONE;
}

static enum step next_node(struct job *j)
{
	if (j->at + 1 >= j->targets)
		return STEP_DONE;
	j->at++;
	j->sent = 0;
	counter_inc(counters.failovers);
	return STEP_SEND;
}

void job_sent(struct job *j, uint64_t now)
{
	if (j->sent++)
		counter_inc(counters.retransmissions);
	else
		nodes_note(job_target(j)->id, NODE_SENT);
	j->due = now + (uint64_t)settings.timeout_ms;
}

enum step job_tick(struct job *j, uint64_t now)
{
	if (now < j->due)
		return STEP_WAIT;
	if (j->sent <= settings.retries)
		return STEP_SEND;
	nodes_note(job_target(j)->id, NODE_TIMEOUT);
	j->silent |= 1u << j->at;
	return next_node(j);
}

enum step job_unreachable(struct job *j)
{
	nodes_note(job_target(j)->id, NODE_UNREACHABLE);
	return next_node(j);
}

enum step job_reply(struct job *j, const struct wire_reply *r)
{
	switch (r->result) {
	case WIRE_GARBAGE:
		counter_inc(counters.garbage);
		return STEP_WAIT;
	case WIRE_LOAD_LIMIT:
		nodes_note(job_target(j)->id, NODE_LOAD_LIMIT);
		counter_inc(counters.load_limits);
		return next_node(j);
	case WIRE_NO_CALL:
		nodes_note(job_target(j)->id, NODE_ANSWERED);
		return op_begins(j->op) ? STEP_DONE : next_node(j);
	case WIRE_ERROR:
		nodes_note(job_target(j)->id, NODE_REFUSED);
		return STEP_DONE;
	default:
		nodes_note(job_target(j)->id, NODE_ANSWERED);
		return STEP_DONE;
	}
}
