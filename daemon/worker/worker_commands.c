/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands of the control thread to a worker, and the acknowledgements. */
#include "worker/worker_int.h"

#include <unistd.h>

#include "base/clock.h"

static void wake_control(const struct worker *w)
{
	uint64_t one = 1;

	(void)!write(w->cfg.ack_fd, &one, sizeof(one));
}

static void acknowledge(struct worker *w, struct worker_ack ack)
{
	/* Never full: it has room for every handle. */
	w->acked |= ring_push(&w->acks, &ack, 1) == 0;
}

static void pierce(struct worker *w, uint32_t stream)
{
	struct packet_out out;

	if (!media_pierce(w->media, stream, &out))
		return;
	w->steer_ops->send(w->steer, batch_runner_arena(w->runner), &out, 1);
	if (!out.failed)
		atomic_fetch_add_explicit(&w->pierced, 1, memory_order_relaxed);
}

static int media_cmd(struct worker *w, const struct media_cmd *cmd)
{
	int err = 0;

	switch (cmd->type) {
	case MEDIA_STREAM_SET:
		if (w->steer_ops->carries)
			w->steer_ops->carries(w->steer, cmd->stream.local,
				(cmd->stream.raw || cmd->stream.side ? STEER_PORT_UNREAD : 0) |
					(cmd->stream.emergency ? STEER_PORT_EMERGENCY : 0));
		return media_command(w->media, cmd);
	case MEDIA_CTX_SET:
	case MEDIA_KEY_SET:
	case MEDIA_CTX_RESUME:
	case MEDIA_KEY_RESUME:
	case MEDIA_STREAM_RESUME:
	case MEDIA_STREAM_CUT:
	case MEDIA_STREAM_WATCH:
		return media_command(w->media, cmd);
	case MEDIA_STREAM_PIERCE:
		pierce(w, cmd->id);
		break;
	case MEDIA_CTX_DEL:
		err = media_command(w->media, cmd);
		acknowledge(w, (struct worker_ack){ACK_CTX, cmd->id});
		break;
	case MEDIA_STREAM_DEL:
		err = media_command(w->media, cmd);
		acknowledge(w, (struct worker_ack){ACK_STREAM, cmd->id});
		break;
	case MEDIA_KEY_DEL:
		/* No batch is in flight between bursts, so nothing uses the slots. */
		batch_runner_key_wipe(w->runner, cmd->id);
		err = media_command(w->media, cmd);
		acknowledge(w, (struct worker_ack){ACK_KEY, cmd->id});
		break;
	}
	return err;
}

static void tell_marks(struct worker *w, const struct worker_ask *ask)
{
	struct media_mark mark[MEDIA_MARKS_MAX];
	struct worker_mark out[MEDIA_MARKS_MAX + 1];
	uint64_t now = clock_real_ns();

	for (uint32_t i = 0; i < ask->n; i++) {
		struct worker_mark one = {
			.ctx = ask->ctx[i], .generation = ask->generation[i], .at_ns = now};
		uint64_t tx_rtcp_next;
		uint32_t n = media_marks(w->media, one.ctx, mark, &tx_rtcp_next);

		for (uint32_t k = 0; k < n; k++) {
			out[k] = one;
			out[k].mark = mark[k];
		}
		out[n] = one;
		out[n].end = true;
		out[n].mark.index = tx_rtcp_next;
		(void)ring_push(&w->marks, out, n + 1);
	}
}

void worker_commands(struct worker *w, uint32_t least)
{
	struct worker_cmd cmd = {0};
	uint32_t any = 0;
	int err;

	while ((any < least || cmd.more) && ring_pop(&w->cmds, &cmd)) {
		err = 0;
		any++;
		switch (cmd.kind) {
		case WORKER_MEDIA:
			err = media_cmd(w, &cmd.media);
			break;
		case WORKER_KEY_SET:
			err = batch_runner_key_changed(w->runner, cmd.id);
			break;
		case WORKER_PORT_ADD:
			err = w->steer_ops->port_add(w->steer, cmd.local, cmd.fd);
			if (err)
				close(cmd.fd);
			break;
		case WORKER_PORT_DEL:
			w->steer_ops->port_del(w->steer, cmd.local);
			acknowledge(w, (struct worker_ack){ACK_PORT, cmd.id});
			break;
		case WORKER_RELAY:
			/* Without room the bridge asks again later. */
			(void)w->steer_ops->relay(w->steer, &cmd.relay);
			break;
		case WORKER_UNRELAY:
			w->steer_ops->unrelay(w->steer, cmd.local);
			break;
		case WORKER_STEER_AGAIN:
			w->steer_ops->again(w->steer);
			break;
		case WORKER_MARKS:
			tell_marks(w, &cmd.ask);
			break;
		}
		atomic_fetch_add_explicit(&w->commands, 1, memory_order_relaxed);
		if (err)
			atomic_fetch_add_explicit(&w->command_errors, 1, memory_order_relaxed);
	}
	if (any)
		explicit_bzero(&cmd, sizeof(cmd));
	w->executed += any;
	if (w->acked || w->executed >= CMD_MANY)
		wake_control(w);
	w->acked = false;
	if (w->executed >= CMD_MANY || ring_empty(&w->cmds))
		w->executed = 0;
}
