/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "call/dtmf_trigger.h"

#include "audio/tones.h"
#include "call/apply.h"
#include "call/call_int.h"
#include "call/unsaved.h"

static bool ends_with(const uint8_t last[SIDE_TRIGGER_MAX], const uint8_t want[SIDE_TRIGGER_MAX])
{
	size_t n = strnlen((const char *)want, SIDE_TRIGGER_MAX);

	return n && memcmp(last + SIDE_TRIGGER_MAX - n, want, n) == 0;
}

/* Puts a copy with the side's gate set or cleared into force. True: it is. */
static bool change(struct calls *c, struct call *call, uint8_t side, bool on, uint64_t now_ns)
{
	struct call *next = call_clone(&c->keys, call);
	struct pool *p = NULL;
	struct side_dtmf *d;
	int err;

	if (!next)
		return false;
	d = &next->side[side]->dtmf;
	d->begun = on;
	d->digits = 0;
	d->since_ns = now_ns;
	memset(d->last, 0, sizeof(d->last));
	next->side[side]->gate =
		(uint8_t)((next->side[side]->gate & ~MEDIA_GATE_DTMF) | (on ? MEDIA_GATE_DTMF : 0));
	err = pool_create(&p, 1u << 20);
	err = err ? err : apply_take(c->relay, call, next);
	if (err)
		call_free(&c->keys, next);
	else
		err = calls_put_in_force(c, p, call, next, now_ns);
	pool_destroy(p);
	return !err;
}

void dtmf_digit(struct calls *c, struct call *call, uint8_t side, uint8_t digit, uint64_t now_ns)
{
	struct side_dtmf *d = &call->side[side]->dtmf;

	if (!d->trigger[0] || digit > 15)
		return;
	memmove(d->last, d->last + 1, SIDE_TRIGGER_MAX - 1);
	d->last[SIDE_TRIGGER_MAX - 1] = (uint8_t)tones_char(digit);
	if (!d->begun) {
		if (ends_with(d->last, d->trigger))
			(void)change(c, call, side, true, now_ns);
		return;
	}
	if (d->digits < UINT8_MAX)
		d->digits++;
	if (d->end_digits)
		unsaved_add(&c->saver, call, true);
	if (ends_with(d->last, d->end) || (d->end_digits && d->digits >= d->end_digits))
		(void)change(c, call, side, false, now_ns);
}

bool dtmf_tick(struct calls *c, struct call *call, uint64_t now_ns)
{
	for (uint32_t k = 0; k < call->sides; k++) {
		const struct side_dtmf *d = &call->side[k]->dtmf;

		if (d->begun && d->end_ms && now_ns >= d->since_ns + d->end_ms * 1000000ull)
			return change(c, call, (uint8_t)k, false, now_ns);
	}
	return false;
}
