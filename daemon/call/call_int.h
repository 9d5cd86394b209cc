/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All calls, as the files of this room change them. Private to call/. */
#ifndef XCIPHER_CALL_CALL_INT_H
#define XCIPHER_CALL_CALL_INT_H

#include "call/call.h"
#include "call/links.h"
#include "call/model.h"
#include "call/table.h"
#include "call/trace.h"
#include "call/unsaved.h"

struct call_closing;
struct call_handover;
struct call_key_notice;
struct call_timeout;
struct call_trouble;
struct call_session_notice;
struct session_place;

struct calls {
	struct call_policy policy;
	const struct relay *relay;
	struct reach reach_default;
	const struct reach *reach;
	struct links links;
	struct call_table table;
	struct keystore keys;
	enum call_limit limit; /* current limit, other than sessions */
	bool passive;
	bool leaving;            /* calls that end here continue on another node */
	struct call *cursor;     /* of the tick */
	struct {                 /* reach_again.c */
		struct call *at; /* next call of the pass; NULL: no pass has begun */
		uint32_t passes; /* passes left, including the current one */
	} again;
	struct calls_counters counters;
	struct saver saver;
	void (*notice)(void *arg, const struct call_key_notice *n);
	void *notice_arg;
	void (*timeout)(void *arg, const struct call_timeout *t);
	void *timeout_arg;
	struct trace trace;
	struct session_place *session_place; /* by handle; NULL: there are no sessions */
	struct session_place *audio_place;   /* of audio sessions; NULL: there are none */
	void (*session_notice)(void *arg, const struct call_session_notice *n);
	void *session_notice_arg;
	void (*handover)(void *arg, const struct call_handover *h);
	void *handover_arg;
	const struct recorder *rec;
	struct audio_files *files; /* play.c; NULL: no files are played */
	uint32_t plays;            /* number of the last play */
	call_reply_fits *fits;
	void *fits_arg;
	void (*ended)(void *arg, const struct call_closing *e);
	void *ended_arg;
	void (*trouble)(void *arg, const struct call_trouble *t);
	void *trouble_arg;
};

/* Puts next in place of prev, or makes it a call (prev is NULL). Consumes next in any case. 0, or
 * the error of apply_commit() or links_plan(): then nothing changed. */
int calls_put_in_force(
	struct calls *c, struct pool *p, struct call *prev, struct call *next, uint64_t now_ns);

/* Ends a call: releases its ports, streams, keys and recording, and frees it. now_ns: 0 = now. */
void calls_end(struct calls *c, struct call *call, enum call_end why, uint64_t now_ns);

/* Sets the reply for a negative errno; -EAGAIN of a new call is a load limit. */
void calls_resource_error(struct call_reply *out, int err, bool is_new);

/* Access for save and restore. */
struct keystore *calls_keys(struct calls *c);

/* Adds a restored call that is committed already. */
void calls_adopt(struct calls *c, struct call *call);

#endif
