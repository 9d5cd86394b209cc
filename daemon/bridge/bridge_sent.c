/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls send their whole configuration; the bridge sends only differences to the worker. */
#include "bridge/bridge_sent.h"

#include <errno.h>
#include <stdlib.h>

int bridge_sent_init(struct bridge_sent *s, uint32_t max_stream, uint32_t max_ctx)
{
	s->stream = calloc(max_stream + 1, sizeof(*s->stream));
	s->ctx = calloc(max_ctx + 1, sizeof(*s->ctx));
	s->has_stream = calloc(max_stream + 1, sizeof(*s->has_stream));
	s->has_ctx = calloc(max_ctx + 1, sizeof(*s->has_ctx));
	return s->stream && s->ctx && s->has_stream && s->has_ctx ? 0 : -ENOMEM;
}

void bridge_sent_fini(struct bridge_sent *s)
{
	free(s->stream);
	free(s->ctx);
	free(s->has_stream);
	free(s->has_ctx);
}

bool bridge_sent_same(const struct bridge_sent *s, const struct media_cmd *cmd)
{
	if (cmd->type == MEDIA_STREAM_SET)
		return s->has_stream[cmd->id] &&
			media_stream_same(&s->stream[cmd->id], &cmd->stream);
	return cmd->type == MEDIA_CTX_SET && s->has_ctx[cmd->id] &&
		media_ctx_same(&s->ctx[cmd->id], &cmd->ctx);
}

void bridge_sent_note(struct bridge_sent *s, const struct media_cmd *cmd)
{
	if (cmd->type == MEDIA_STREAM_SET) {
		s->stream[cmd->id] = cmd->stream;
		s->has_stream[cmd->id] = true;
	} else if (cmd->type == MEDIA_STREAM_CUT) {
		s->stream[cmd->id].remote = (struct endpoint){0};
	} else if (cmd->type == MEDIA_CTX_SET) {
		s->ctx[cmd->id] = cmd->ctx;
		s->has_ctx[cmd->id] = true;
	}
}
