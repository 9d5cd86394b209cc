/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts and stops recordings by command. record_marks.c sets the marks on sides and legs. */
#include "call/recording.h"

#include <errno.h>
#include <stdio.h>

#include "call/call.h"
#include "call/call_int.h"
#include "call/record_marks.h"
#include "call/record_media.h"
#include "call/table.h"

void calls_recorder(struct calls *c, const struct recorder *rec)
{
	c->rec = rec;
}

static const char *record_error(int err, const struct ng_request *r)
{
	switch (err) {
	case -EINVAL: /* recording-file, or else the pattern, gives the name */
		return r->recording_file.len ? NGE_RECORDING_NAME : NGE_RECORDING_PATTERN;
	case -ENOSPC:
		return NGE_RECORDINGS;
	case -EAGAIN:
		return NGE_RECORDER;
	default:
		return NGE_RECORDING;
	}
}

/* Opens a recording for the copy of a call. The name is stored in the call, so that a restarted
 * process can continue it. */
static const char *record_open(struct calls *c, struct pool *p, struct call *next,
	const struct ng_request *r, uint64_t now_ns)
{
	char path[RECORD_PATH_MAX];
	struct record_start start = {.call_id = next->id,
		.metadata = r->metadata.len ? r->metadata : next->metadata,
		.file = r->recording_file,
		.pattern = r->recording_pattern,
		.about = record_about(p, next),
		.now_ns = now_ns};
	int err;

	if (r->metadata.len && str_replace(&next->metadata, r->metadata))
		return NGE_NOMEM;
	err = c->rec->ops->start(c->rec->arg, &start, &next->tap, path);
	if (err)
		return record_error(err, r);
	next->tap_parts = 0;
	next->tap_media = 0;
	if (str_replace(&next->tap_path, str_from(path))) {
		c->rec->ops->stop(c->rec->arg, next->tap, true);
		return NGE_NOMEM;
	}
	return NULL;
}

/* The name that its files share: without folder and number. */
static struct str record_base(const struct call *call)
{
	struct str name = call->tap_path;
	char number[16];
	size_t len;

	for (size_t i = name.len; i > 0; i--)
		if (name.s[i - 1] == '/') {
			name = (struct str){name.s + i, name.len - i};
			break;
		}
	if (call->tap_parts == 0)
		return name;
	len = (size_t)snprintf(number, sizeof(number), "-part%u", call->tap_parts + 1);
	if (name.len > len && memcmp(name.s + name.len - len, number, len) == 0)
		name.len -= len;
	return name;
}

const char *calls_record_resume(struct calls *c, struct pool *p, struct call *call, uint64_t now_ns)
{
	char path[RECORD_PATH_MAX];
	struct record_start start = {.call_id = call->id,
		.metadata = call->metadata,
		.file = record_base(call),
		.parts = call->tap_parts + 1,
		.about = pool_printf(p, "continues: " STR_FMT ".pcap\n" STR_FMT,
			STR_ARG(call->tap_path), STR_ARG(record_about(p, call))),
		.now_ns = now_ns};
	int err = c->rec ? c->rec->ops->start(c->rec->arg, &start, &call->tap, path) : -ENOENT;

	call->tap_parts++;
	if (!err && str_replace(&call->tap_path, str_from(path))) {
		c->rec->ops->stop(c->rec->arg, call->tap, false);
		err = -ENOMEM;
	}
	call->tap_media = 0;
	if (!err)
		record_media_tell(c, call);
	if (!err)
		return NULL;
	call->tap = 0;
	return err == -ENOENT
		? "its recording does not continue: xcipherd runs without --recording-dir"
		: "its recording does not continue: cannot open a file";
}

/* As with rtpengine, a recording that runs keeps its files. */
static struct str record_warning(
	struct pool *p, const struct call *call, const struct ng_request *r)
{
	struct str base = record_base(call), file = r->recording_file;

	for (size_t i = file.len; i > 0; i--)
		if (file.s[i - 1] == '/') {
			file = (struct str){file.s + i, file.len - i};
			break;
		}
	if (!file.len || str_eq(base, file))
		return STR_NONE;
	return pool_printf(p,
		"recording-file is ignored, because the call is being recorded as " STR_FMT
		": send stop recording first",
		STR_ARG(base));
}

static void record_reply(struct pool *p, const struct call *call, struct ngval *dict)
{
	struct ngval *d = ngval_add_dict(p, dict, STR("recording"));

	ngval_add_str(p, d, STR("file"), pool_printf(p, STR_FMT ".pcap", STR_ARG(call->tap_path)));
	ngval_add_str(p, d, STR("metadata file"),
		pool_printf(p, STR_FMT ".txt", STR_ARG(call->tap_path)));
}

void calls_record(struct calls *c, struct pool *p, const struct ng_request *r,
	struct calls_record order, uint64_t now_ns, struct call_reply *out)
{
	struct call *call = call_table_find(&c->table, r->call_id), *next;
	uint32_t tap;
	bool opened;
	int err;

	*out = (struct call_reply){0};
	if (!call || !c->rec) {
		out->error = call ? NGE_RECORDING_OFF : NGE_UNKNOWN_CALL;
		return;
	}
	next = call_clone(&c->keys, call);
	if (!next) {
		out->error = NGE_NOMEM;
		return;
	}
	out->error = record_mark(next, r, &order.what);
	opened = !out->error && order.what == CALL_RECORD_START && !next->tap;
	if (opened)
		out->error = record_open(c, p, next, r, now_ns);
	if (out->error) {
		call_free(&c->keys, next);
		return;
	}
	record_reply(p, next, order.dict);
	tap = next->tap;
	if (order.what == CALL_RECORD_START && !opened)
		out->warning = record_warning(p, next, r);
	if (order.what == CALL_RECORD_START && !opened && r->metadata.len)
		(void)str_replace(&next->metadata, r->metadata); /* only shown */
	if (order.what == CALL_RECORD_STOP)
		next->tap = 0;
	err = calls_put_in_force(c, p, call, next, now_ns);
	if (err)
		calls_resource_error(out, err, false);
	/* Close the recording: this request ended it, or opened it and then failed. */
	if (err ? opened : order.what == CALL_RECORD_STOP)
		c->rec->ops->stop(
			c->rec->arg, tap, opened || ng_flag(r, NG_FLAG_DISCARD_RECORDING));
}
