/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See mock_relay.h. Handles wrap, so that thousands of calls can come and go. */
#include "mock_relay.h"

#include <errno.h>

static bool fails(struct mock_relay *m)
{
	return ++m->calls == m->fail_at;
}

static uint32_t handle(struct mock_relay *m)
{
	m->next = m->next + 2 >= MOCK_MAX ? 2 : m->next + 2;
	return m->next;
}

static const struct relay_local *op_locals(void *arg, uint32_t *n)
{
	static const struct relay_local local[] = {
		{"inner", {{10, 0, 0, 1}, 0, AF_INET, 0}, {{10, 0, 0, 1}, 0, AF_INET, 0}},
		{"outer", {{10, 9, 0, 1}, 0, AF_INET, 0}, {{198, 51, 100, 7}, 0, AF_INET, 0}},
		{"six", {{0x20, 1, 0x0d, 0xb8, [15] = 1}, 0, AF_INET6, 0},
			{{0x20, 1, 0x0d, 0xb8, [15] = 1}, 0, AF_INET6, 0}},
	};

	(void)arg;
	*n = ARRAY_LEN(local);
	return local;
}

static uint32_t op_worker_choose(void *arg)
{
	(void)arg;
	return 0;
}

static int op_port_take(void *arg, struct relay_port *out, uint32_t worker, uint8_t local)
{
	struct mock_relay *m = arg;

	(void)worker;
	if (fails(m))
		return m->fail_with;
	out->rtp_stream = handle(m);
	out->rtcp_stream = out->rtp_stream + 1;
	out->rtp = (struct local_port){(uint16_t)(20000 + out->rtp_stream), local, 0};
	out->rtcp = (struct local_port){(uint16_t)(out->rtp.port + 1), local, 0};
	m->ports++;
	return 0;
}

static void op_port_release(void *arg, uint32_t worker, const struct relay_port *port)
{
	struct mock_relay *m = arg;

	(void)worker;
	(void)port;
	m->ports--;
}

static int op_ctx_take(void *arg, uint32_t *ctx, uint32_t worker)
{
	struct mock_relay *m = arg;

	(void)worker;
	if (fails(m))
		return m->fail_with;
	*ctx = handle(m);
	m->ctxs++;
	return 0;
}

static void op_ctx_release(void *arg, uint32_t worker, uint32_t ctx)
{
	struct mock_relay *m = arg;

	(void)worker;
	(void)ctx;
	m->ctxs--;
}

static int op_key_take(void *arg, uint32_t *slot, uint32_t worker, const struct srtp_master *master)
{
	struct mock_relay *m = arg;

	(void)worker;
	if (fails(m))
		return m->fail_with;
	*slot = handle(m);
	m->key[*slot] = *master;
	m->keys++;
	return 0;
}

static void op_key_release(void *arg, uint32_t worker, uint32_t slot)
{
	struct mock_relay *m = arg;

	(void)worker;
	m->keys -= slot != 0;
}

static int op_commit(void *arg, uint32_t worker, const struct media_cmd *cmd, uint32_t n)
{
	struct mock_relay *m = arg;

	(void)worker;
	if (fails(m))
		return m->fail_with;
	for (uint32_t i = 0; i < n; i++) {
		if (cmd[i].type == MEDIA_CTX_SET)
			m->ctx[cmd[i].id] = cmd[i].ctx;
		else
			m->stream[cmd[i].id] = cmd[i].stream;
	}
	m->commits++;
	return 0;
}

static void op_stats(void *arg, uint32_t worker, uint32_t stream, struct relay_stats *out)
{
	const struct mock_relay *m = arg;

	(void)worker;
	*out = (struct relay_stats){.last_packet_ns = m->last_packet_ns};
	out->remote = m->stream[stream].remote;
}

void mock_relay_init(struct mock_relay *m)
{
	static const struct relay_ops ops = {op_locals, op_worker_choose, op_port_take,
		op_port_release, op_ctx_take, op_ctx_release, op_key_take, op_key_release,
		op_commit, op_stats};

	memset(m, 0, sizeof(*m));
	m->fail_with = -ENOSPC;
	m->relay.ops = &ops;
	m->relay.arg = m;
}
