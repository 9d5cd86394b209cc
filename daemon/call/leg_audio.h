/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The audio session of a leg (call/audio.h): whether the leg needs one, its handle and its
 * settings. Both legs of a pair have one, or none. */
#ifndef CALL_LEG_AUDIO_H
#define CALL_LEG_AUDIO_H

#include "call/audio.h"
#include "call/model.h"

/* Takes handles for the legs of the copy c that need one, and drops handles that no leg needs. The
 * call in force keeps its handles until the commit. 0, or the error of audio_ops.take. */
int leg_audio_take(const struct relay *r, struct call *c);
/* Prepares the settings of the m-line's session, which must exist. Errors as audio_ops.set, but
 * -ENOPROTOOPT for -EINVAL. */
int leg_audio_set(
	const struct relay *r, const struct call *c, const struct side *s, uint32_t media);
/* Whether the terminal of the m-line may get packets under the SSRC of a session, now or after the
 * answer to the present offer. If so, it must not get a=ssrc of the other terminal. asked: audio of
 * the leg that was offered the codecs, on either side. */
bool leg_audio_may_send(
	const struct call *c, const struct side *to, uint32_t media, const struct leg_audio *asked);
/* Payload types that the leg's terminal may send, with those of telephone events and comfort
 * noise. Returns how many; 0: no codec of the process is among them. */
uint32_t leg_audio_types(
	const struct relay *r, const struct leg *l, struct audio_type out[AUDIO_TYPES]);
/* Writes "opus to PCMU" to text (CALL_PAIR_TEXT bytes) if a worker or a session transcodes packets
 * from this m-line's terminal. False: nothing is transcoded. */
bool leg_audio_pair_text(const struct call *c, const struct side *s, uint32_t media, char *text);
/* The same text in the pool; empty: nothing is transcoded. */
struct str leg_audio_pair(
	const struct call *c, const struct side *s, uint32_t media, struct pool *p);

/* What the session counted of its terminal's packets, as text in the pool; empty: no session. */
struct str leg_audio_counts(const struct relay *r, const struct leg *l, struct pool *p);

#endif
