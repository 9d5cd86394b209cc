/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plays audio and digits to parties, by command (ng's "play media", "stop media", "play DTMF"). */
#ifndef CALL_PLAY_H
#define CALL_PLAY_H

#include "call/call.h"

struct audio_files;
struct call;

/* Sets the files that commands may play. They must outlive the calls. NULL: none. */
void calls_files(struct calls *c, struct audio_files *f);

/* Plays a file, or the bytes in the request, to the selected parties: with the flag block-egress in
 * place of the other party's audio, else mixed with it. dict gets the duration of the file in ms. A
 * second play to the same party ends the first. out->again: the file is still being read. */
void calls_play_media(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict);
/* Ends the clips of the selected parties. dict gets the last position in samples. */
void calls_stop_media(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict);
/* Sends a digit on behalf of the selected parties. Their peers receive it as a telephone event if
 * they agreed to these, else as a tone. */
void calls_play_dtmf(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out);

/* Ends audio sessions that only a finished play needed. True: the call was replaced. */
bool play_tick(struct calls *c, struct call *call, uint64_t now_ns);

#endif
