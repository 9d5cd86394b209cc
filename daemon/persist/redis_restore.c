/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Restores calls: SCANs all keys page by page, and restores each call when the workers' rings have
 * room. Calls that cannot be restored are skipped, and up to WARNINGS of them logged. They stay in
 * Redis until they expire. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "call/unsaved.h"
#include "persist/redis_int.h"
#include "persist/restore.h"

#define WARNINGS 20u
#define PAGE     "200"
#define PAGES_MAX \
	1000000u /* limit of pages, including other programs' keys: a hostile server
			     * may never end */
#define POOL_LIMIT (16u << 20)
#define TURN_NS    20000000ull /* time limit per turn, for the control thread's other work */

bool redis_str_set(struct str *to, struct str from)
{
	char *s = malloc(from.len + 1);

	if (!s)
		return false;
	memcpy(s, from.s ? from.s : "", from.len);
	free((void *)(uintptr_t)to->s);
	to->s = s;
	to->len = from.len;
	return true;
}

void redis_entry_free(struct redis_entry *e)
{
	if (!e)
		return;
	free((void *)(uintptr_t)e->id.s);
	free((void *)(uintptr_t)e->whole.s);
	free((void *)(uintptr_t)e->state.s);
	free(e);
}

struct redis_entry *redis_entry_new(struct str id, struct str whole, struct str state)
{
	struct redis_entry *e = calloc(1, sizeof(*e));

	if (e && redis_str_set(&e->id, id) && redis_str_set(&e->whole, whole) &&
		redis_str_set(&e->state, state))
		return e;
	redis_entry_free(e);
	return NULL;
}

void redis_restore_add(struct redis *r, struct redis_entry *e)
{
	e->next = NULL;
	if (r->last)
		r->last->next = e;
	else
		r->first = e;
	r->last = e;
	r->queued++;
}

void redis_restore_drop(struct redis *r)
{
	struct redis_entry *next;

	for (struct redis_entry *e = r->first; e; e = next) {
		next = e->next;
		redis_entry_free(e);
	}
	r->first = r->last = NULL;
	r->queued = 0;
}

/* --- One call --------------------------------------------------------------------------------- */

static void skipped(struct redis *r, struct str id, const char *why)
{
	char text[100];
	size_t n = id.len < sizeof(text) - 1 ? id.len : sizeof(text) - 1;

	r->skipped++;
	if (++r->restoring_skipped > WARNINGS)
		return;
	for (size_t i = 0; i < n; i++)
		text[i] = id.s[i] >= 0x20 && id.s[i] < 0x7f ? id.s[i] : '?';
	text[n] = 0;
	log_warn("redis: call-id \"%s\" is not restored: %s%s", text, why,
		r->restoring_skipped == WARNINGS ? " (further ones are only counted)" : "");
}

static const char *open_why(int err)
{
	return err == -EPROTONOSUPPORT ? "written by another version"
				       : "not written with this key, or changed since";
}

static void bring_back(struct redis *r, const struct redis_entry *e)
{
	char name[REDIS_NAME_MAX];
	struct sbuf whole, state;
	struct pool *p = NULL;
	const char *why = "out of memory";
	int err;

	sbuf_init(&whole, 0);
	sbuf_init(&state, 0);
	err = redis_crypt_open(r->crypt, &whole, redis_name(r, name, e->id, 'c'), e->whole);
	if (err) {
		skipped(r, e->id, open_why(err));
		sbuf_fini(&whole);
		return;
	}
	if (e->state.len &&
		redis_crypt_open(r->crypt, &state, redis_name(r, name, e->id, 's'), e->state))
		state.len = 0; /* use the state in the call's own record then */
	err = pool_create(&p, POOL_LIMIT);
	if (!err)
		err = calls_restore(r->cfg.calls, p, sbuf_view(&whole), sbuf_view(&state),
			clock_real_ns(), &why);
	if (!err) {
		r->restored++;
		if (why)
			log_call(LOG_WARNING, &(struct log_about){.call_id = e->id}, "%s", why);
	} else if (err != -EEXIST)
		skipped(r, e->id, why);
	pool_destroy(p);
	sbuf_fini(&whole);
	sbuf_fini(&state);
}

bool redis_restore_some(struct redis *r)
{
	uint64_t until = clock_mono_ns() + TURN_NS;

	while (r->first && r->cfg.has_room(r->cfg.has_room_arg) && clock_mono_ns() < until) {
		struct redis_entry *e = r->first;

		r->first = e->next;
		r->queued--;
		if (!r->first)
			r->last = NULL;
		bring_back(r, e);
		redis_entry_free(e);
	}
	return !r->first && !r->scan.running && r->scanned;
}

/* --- All calls -------------------------------------------------------------------------------- */

static void scan_page(struct redis *r);

static void walk(struct redis *r)
{
	r->scan.running = true;
	r->scan.again = r->scan.failed = false;
	r->scan.walk++;
	r->scan.pages = 0;
	snprintf(r->scan.cursor, sizeof(r->scan.cursor), "0");
	scan_page(r);
}

static void page_done(struct redis *r)
{
	if (r->scan.gets || r->scan.asked || !r->scan.running)
		return;
	if (r->scan.failed) {
		r->scan.running = false;
		return;
	}
	if (strcmp(r->scan.cursor, "0") != 0) {
		scan_page(r);
		return;
	}
	r->scan.running = false;
	r->scanned = true;
	if (r->mode == REDIS_FOLLOWING)
		redis_mirror_sweep(r);
}

static struct str text_of(const struct resp *r)
{
	return r->type == RESP_STRING ? r->text : STR_NONE;
}

/* On standby only authentic values are stored: invalid ones must not replace a call in the
 * mirror. */
static void follow_entry(struct redis *r, struct str id, struct str whole, struct str state)
{
	if (!whole.len || !redis_is_genuine(r, id, 'c', whole) ||
		(state.len && !redis_is_genuine(r, id, 's', state))) {
		redis_refused(r, "a call");
		redis_mirror_keep(r, id);
		return;
	}
	redis_mirror_put(r, id, 'c', whole, false);
	if (state.len)
		redis_mirror_put(r, id, 's', state, false);
}

static void restore_entry(struct redis *r, struct str id, struct str whole, struct str state)
{
	struct redis_entry *e;

	if (r->queued >= REDIS_MIRROR_MAX) {
		skipped(r, id, "too many calls in Redis");
		return;
	}
	e = redis_entry_new(id, whole, state);
	if (e)
		redis_restore_add(r, e);
	else
		skipped(r, id, "out of memory");
}

static void on_entry(void *arg, void *priv, const struct resp *reply)
{
	struct redis *r = arg;
	struct redis_entry *e = priv;
	struct str whole, state;

	r->scan.gets--;
	if (!reply || !r->scan.running) {
		r->scan.failed = true;
	} else if (reply->type != RESP_ARRAY || reply->elements != 2) {
		skipped(r, e->id, "is not a call of xcipherd");
	} else {
		whole = text_of(&reply->element[0]);
		state = text_of(&reply->element[1]);
		if (r->mode == REDIS_FOLLOWING)
			follow_entry(r, e->id, whole, state);
		else if (whole.len)
			restore_entry(r, e->id, whole, state);
	}
	redis_entry_free(e);
	page_done(r);
}

static void get_entry(struct redis *r, struct str key)
{
	struct str word[] = {STR("HMGET"), key, STR("c"), STR("s")};
	size_t head = sizeof(REDIS_PREFIX) - 1;
	struct str id = {key.s + head, key.len - head};
	struct redis_entry *e;

	if (key.len <= head || id.len > SAVE_ID_MAX)
		return;
	e = redis_entry_new(id, STR_NONE, STR_NONE);
	if (!e || redis_link_send(r->read, on_entry, e, 4, word))
		redis_entry_free(e);
	else
		r->scan.gets++;
}

/* [cursor, [key, ...]]; the cursor is a number. */
static bool is_page(const struct resp *r)
{
	uint64_t cursor;

	return r->type == RESP_ARRAY && r->elements == 2 && r->element[0].type == RESP_STRING &&
		r->element[1].type == RESP_ARRAY &&
		str_to_u64(&cursor, r->element[0].text, UINT64_MAX) == 0;
}

/* The walk ends before all calls were read. */
static void page_failed(struct redis *r, const struct resp *reply)
{
	r->scan.running = false;
	if (!reply)
		return;
	if (reply->type != RESP_ERROR) {
		redis_link_fail(r->read, "its reply does not fit SCAN");
		return;
	}
	log_warn("redis: cannot read calls: " STR_FMT, STR_ARG(reply->text));
	/* The server replies, so there will be no reconnection that reads again. */
	r->scanned = true;
}

static void on_page(void *arg, void *priv, const struct resp *reply)
{
	struct redis *r = arg;
	const struct resp *keys;

	(void)priv;
	r->scan.asked = false;
	if (reply && r->scan.again) {
		walk(r);
		return;
	}
	if (!reply || !is_page(reply) || ++r->scan.pages > PAGES_MAX) {
		if (r->scan.pages > PAGES_MAX)
			redis_link_fail(r->read, "SCAN does not end");
		page_failed(r, reply);
		return;
	}
	snprintf(r->scan.cursor, sizeof(r->scan.cursor), STR_FMT, STR_ARG(reply->element[0].text));
	keys = &reply->element[1];
	for (uint32_t i = 0; i < keys->elements; i++)
		if (keys->element[i].type == RESP_STRING)
			get_entry(r, keys->element[i].text);
	page_done(r);
}

static void scan_page(struct redis *r)
{
	struct str word[] = {STR("SCAN"), str_from(r->scan.cursor), STR("MATCH"),
		STR(REDIS_PREFIX "*"), STR("COUNT"), STR(PAGE)};

	r->scan.asked = redis_link_send(r->read, on_page, NULL, 6, word) == 0;
	r->scan.running = r->scan.asked;
}

void redis_scan_start(struct redis *r)
{
	if (r->scan.running && !r->scan.again)
		return;
	r->scan.running = true;
	/* A page of the abandoned walk is still to come. */
	r->scan.again = r->scan.asked;
	if (!r->scan.asked)
		walk(r);
}
