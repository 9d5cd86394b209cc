/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "call/dtmf.h"

#include "audio/tones.h"
#include "call/gate.h"

enum { HZ = 400, VOLUME = 10, VOLUME_MAX = 63 };
#define END_MS_MAX (24 * 3600 * 1000)

static int64_t bounded(int64_t n, int64_t def, int64_t min, int64_t max)
{
	return n < 0 ? def : n < min ? min : n > max ? max : n;
}

/* False: not all of it are digits, or too many. */
static bool digits(uint8_t to[SIDE_TRIGGER_MAX], struct str from)
{
	if (from.len > SIDE_TRIGGER_MAX)
		return false;
	memset(to, 0, SIDE_TRIGGER_MAX);
	for (size_t i = 0; i < from.len; i++) {
		uint8_t event = tones_event(from.s[i]);

		if (event == TONES_NO_DIGIT)
			return false;
		to[i] = (uint8_t)tones_char(event);
	}
	return true;
}

static uint8_t digit_of(struct str code)
{
	uint64_t n;

	if (str_to_u64(&n, code, 15) == 0)
		return (uint8_t)n;
	return code.len == 1 ? tones_event(code.s[0]) : TONES_NO_DIGIT;
}

static enum audio_cover_mode mode_of(enum ng_dtmf_security s)
{
	switch (s) {
	case NG_DTMF_SILENCE:
		return AUDIO_COVER_SILENCE;
	case NG_DTMF_TONE:
		return AUDIO_COVER_TONE;
	case NG_DTMF_RANDOM:
		return AUDIO_COVER_RANDOM;
	case NG_DTMF_ZERO:
	case NG_DTMF_DIGIT:
		return AUDIO_COVER_DIGIT;
	default:
		return AUDIO_COVER_DROP;
	}
}

bool dtmf_blocks(const struct ng_request *r)
{
	return r->dtmf.security > NG_DTMF_OFF && !r->dtmf.trigger.len;
}

const char *dtmf_read(struct side *s, const struct ng_request *r)
{
	struct side_dtmf next = s->dtmf;

	if (ng_flag(r, NG_FLAG_DETECT_DTMF))
		next.cover.listen = true;
	if (!digits(r->dtmf.trigger.len ? next.trigger : (uint8_t[SIDE_TRIGGER_MAX]){0},
		    r->dtmf.trigger) ||
		!digits(r->dtmf.end.len ? next.end : (uint8_t[SIDE_TRIGGER_MAX]){0}, r->dtmf.end))
		return NGE_TRIGGER;
	if (r->dtmf.security != NG_DTMF_DEFAULT) {
		next.cover.mode = (uint8_t)mode_of(r->dtmf.security);
		next.cover.digit = r->dtmf.security == NG_DTMF_DIGIT ? digit_of(r->play.code) : 0;
		next.cover.volume = (uint8_t)bounded(r->play.volume, VOLUME, 0, VOLUME_MAX);
		next.cover.hz = (uint16_t)bounded(r->dtmf.hz, HZ, NG_DTMF_HZ_MIN, NG_DTMF_HZ_MAX);
	}
	if (next.cover.digit == TONES_NO_DIGIT)
		return NGE_DIGIT;
	next.end_digits = (uint8_t)bounded(r->dtmf.end_digits, next.end_digits, 0, UINT8_MAX);
	next.end_ms = (uint32_t)bounded(r->dtmf.end_ms, next.end_ms, 0, END_MS_MAX);
	s->dtmf = next;
	return NULL;
}

void dtmf_forget(struct side *s)
{
	bool listen = s->dtmf.cover.listen;

	s->dtmf = (struct side_dtmf){.cover = {.listen = listen}};
}

void dtmf_forget_trigger(struct side *s)
{
	s->dtmf.begun = false;
	memset(s->dtmf.trigger, 0, sizeof(s->dtmf.trigger));
}

static bool is_blocked(const struct call *c, const struct side *s)
{
	uint8_t gate = gate_of_side(c, s);

	for (uint32_t to = 0; to < c->sides; to++)
		gate |= s->flow[to];
	return gate & MEDIA_GATE_DTMF;
}

bool dtmf_needs_session(const struct call *c, const struct side *s)
{
	return s->dtmf.cover.listen || s->dtmf.trigger[0] ||
		(s->dtmf.cover.mode != AUDIO_COVER_DROP && is_blocked(c, s));
}

bool dtmf_only_drops(const struct call *c)
{
	for (uint32_t k = 0; k < c->sides; k++)
		for (uint32_t i = 0; i < c->side[k]->legs; i++) {
			const struct leg *l = c->side[k]->leg[i];

			if (l && l->active && !c->side[k]->listener && !l->audio.has &&
				(l->events[0] | l->events[1]) && dtmf_needs_session(c, c->side[k]))
				return true;
		}
	return false;
}
