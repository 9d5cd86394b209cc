/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration that a worker was sent last, by handle: the only copy of streams and contexts
 * outside the worker. The bridge compares new configurations with it, and offload reads it. Control
 * thread only. */
#ifndef BRIDGE_BRIDGE_SENT_H
#define BRIDGE_BRIDGE_SENT_H

#include "media/media.h"

struct bridge_sent {
	struct media_stream_cfg *stream;
	struct media_ctx_cfg *ctx;
	bool *has_stream, *has_ctx; /* since the handle was taken */
};

/* 0 or -ENOMEM; bridge_sent_fini() in both cases. */
int bridge_sent_init(struct bridge_sent *s, uint32_t max_stream, uint32_t max_ctx);
void bridge_sent_fini(struct bridge_sent *s);
/* Whether the worker already has the command's configuration. */
bool bridge_sent_same(const struct bridge_sent *s, const struct media_cmd *cmd);
/* Notes that the command was sent. */
void bridge_sent_note(struct bridge_sent *s, const struct media_cmd *cmd);

#endif
