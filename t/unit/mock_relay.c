/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mock_relay.h"

#include <assert.h>
#include <errno.h>

#define PORT_FIRST 30000u

static bool fails(struct mock_relay *m)
{
	return ++m->calls == m->fail_at;
}

static bool take_one(bool *table, uint32_t first, uint32_t *out)
{
	for (uint32_t i = first; i < MOCK_MAX; i++)
		if (!table[i]) {
			table[i] = true;
			*out = i;
			return true;
		}
	return false;
}

static const struct relay_local *mock_locals(void *arg, uint32_t *n)
{
	struct mock_relay *m = arg;

	*n = m->locals;
	return m->local;
}

static uint32_t mock_worker(void *arg)
{
	(void)arg;
	return 3;
}

static void mock_emergency(void *arg, bool on)
{
	((struct mock_relay *)arg)->emergency = on;
}

static int mock_port_take(void *arg, struct relay_port *out, uint32_t worker, uint8_t local)
{
	struct mock_relay *m = arg;
	uint32_t i;

	assert(worker == 3 && local < m->locals);
	if (fails(m))
		return m->fail_with;
	if ((m->ports_limit &&
		    m->ports + (m->emergency ? 0 : m->ports_reserve) >= m->ports_limit) ||
		!take_one(m->port, 0, &i))
		return -ENOSPC;
	m->ports++;
	*out = (struct relay_port){.rtp = {.port = (uint16_t)(PORT_FIRST + 2 * i), .addr = local},
		.rtcp = {.port = (uint16_t)(PORT_FIRST + 2 * i + 1), .addr = local},
		.rtp_stream = 2 * i,
		.rtcp_stream = 2 * i + 1};
	return 0;
}

static int mock_port_take_more(void *arg, struct relay_port *out, uint32_t worker, uint8_t local)
{
	struct mock_relay *m = arg;
	bool was = m->emergency;
	int err;

	m->emergency = false;
	err = m->plenty ? mock_port_take(arg, out, worker, local) : -ENOSPC;
	m->emergency = was;
	return err;
}

static int mock_port_take_at(
	void *arg, struct relay_port *out, uint32_t *worker, uint8_t local, uint16_t rtp_port)
{
	struct mock_relay *m = arg;
	uint32_t i = (rtp_port - PORT_FIRST) / 2;

	assert((*worker == 3 || *worker == UINT32_MAX) && local < m->locals);
	if (fails(m))
		return m->fail_with;
	if (rtp_port < PORT_FIRST || rtp_port % 2 || i >= MOCK_MAX)
		return -ERANGE;
	if (m->port[i] || rtp_port == m->gone)
		return -EADDRINUSE;
	*worker = 3;
	m->port[i] = true;
	m->ports++;
	*out = (struct relay_port){.rtp = {.port = rtp_port, .addr = local},
		.rtcp = {.port = (uint16_t)(rtp_port + 1), .addr = local},
		.rtp_stream = 2 * i,
		.rtcp_stream = 2 * i + 1};
	return 0;
}

static void mock_port_release(void *arg, uint32_t worker, const struct relay_port *port)
{
	struct mock_relay *m = arg;

	assert(worker == 3 && port->rtp_stream % 2 == 0 && m->port[port->rtp_stream / 2]);
	m->port[port->rtp_stream / 2] = false;
	m->ports--;
	m->stream_set[port->rtp_stream] = m->stream_set[port->rtcp_stream] = false;
}

static int mock_ctx_take(void *arg, uint32_t *ctx, uint32_t worker)
{
	struct mock_relay *m = arg;

	assert(worker == 3);
	if (fails(m))
		return m->fail_with;
	if (!take_one(m->ctx, 0, ctx))
		return -ENOSPC;
	m->ctxs++;
	return 0;
}

static void mock_ctx_release(void *arg, uint32_t worker, uint32_t ctx)
{
	struct mock_relay *m = arg;

	assert(worker == 3 && m->ctx[ctx]);
	m->ctx[ctx] = m->ctx_set[ctx] = false;
	m->ctxs--;
}

static int mock_key_take(void *arg, uint32_t *slot, uint32_t worker,
	const struct srtp_master *master, const struct srtp_master *rtcp)
{
	struct mock_relay *m = arg;
	uint32_t i;

	(void)rtcp;

	assert(worker == 3);
	if (fails(m))
		return m->fail_with;
	if (master->suite == SUITE_PLAIN) {
		*slot = 0;
		return 0;
	}
	if (!take_one(m->key, 1, &i))
		return -ENOSPC;
	m->keys++;
	m->master[i] = *master;
	m->usage[i] = (struct media_key_usage){0};
	*slot = 2 * i;
	return 0;
}

static int mock_preauth_take(void *arg, uint32_t *slot, uint32_t worker,
	const struct srtp_master *master, uint8_t scheme)
{
	struct mock_relay *m = arg;
	int err = mock_key_take(arg, slot, worker, master, NULL);

	assert(scheme);
	if (!err)
		m->preauth[*slot / 2] = scheme;
	return err;
}

static void mock_key_release(void *arg, uint32_t worker, uint32_t slot)
{
	struct mock_relay *m = arg;

	assert(worker == 3 && slot % 2 == 0);
	if (slot == 0)
		return;
	assert(m->key[slot / 2]);
	m->key[slot / 2] = false;
	m->keys--;
}

static void mock_command(struct mock_relay *m, const struct media_cmd *c)
{
	if (c->type == MEDIA_CTX_SET) {
		assert(m->ctx[c->id]);
		m->ctx_cfg[c->id] = c->ctx;
		m->ctx_set[c->id] = true;
		m->rx_new += c->ctx.rx_new;
		m->tx_new += c->ctx.tx_new;
		return;
	}
	if (c->type == MEDIA_CTX_RESUME || c->type == MEDIA_KEY_RESUME ||
		c->type == MEDIA_STREAM_RESUME) {
		assert(c->type == MEDIA_CTX_RESUME            ? m->ctx_set[c->id]
				: c->type == MEDIA_KEY_RESUME ? m->key[c->id / 2]
							      : m->stream_set[c->id]);
		if (m->resumes < 64)
			m->resumed[m->resumes++] = *c;
		return;
	}
	if (c->type == MEDIA_STREAM_WATCH) {
		assert(m->stream_set[c->id]);
		m->watches++;
		return;
	}
	if (c->type == MEDIA_STREAM_PIERCE) {
		assert(m->stream_set[c->id] && m->pierces < 64);
		m->pierced[m->pierces++] = c->id;
		return;
	}
	assert(c->type == MEDIA_STREAM_SET && m->port[c->id / 2]);
	m->stream_cfg[c->id] = c->stream;
	m->stream_set[c->id] = true;
	m->relearn += c->stream.relearn;
}

/* Like the bridge: does not send values that the worker already has. */
static bool mock_same(const struct mock_relay *m, const struct media_cmd *c)
{
	if (c->type == MEDIA_STREAM_SET)
		return m->stream_set[c->id] && media_stream_same(&m->stream_cfg[c->id], &c->stream);
	return c->type == MEDIA_CTX_SET && m->ctx_set[c->id] &&
		media_ctx_same(&m->ctx_cfg[c->id], &c->ctx);
}

static int mock_commit(void *arg, uint32_t worker, const struct media_cmd *cmd, uint32_t n)
{
	struct mock_relay *m = arg;
	uint32_t differ = 0;

	assert(worker == 3 && n > 0);
	for (uint32_t i = 0; i < n; i++)
		differ += !mock_same(m, &cmd[i]);
	if (differ == 0)
		return 0;
	if (fails(m))
		return m->fail_with;
	m->commits++;
	m->commands = differ;
	m->rx_new = m->tx_new = m->relearn = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!mock_same(m, &cmd[i]))
			mock_command(m, &cmd[i]);
	return 0;
}

static void mock_stream_cut(void *arg, uint32_t worker, uint32_t stream)
{
	struct mock_relay *m = arg;

	assert(worker == 3 && m->stream_set[stream]);
	m->stream_cfg[stream].remote = (struct endpoint){0};
	m->cuts++;
}

static int mock_stream_restart(void *arg, uint32_t worker, uint32_t stream, uint64_t now_ns)
{
	struct mock_relay *m = arg;
	struct media_cmd set = {.type = MEDIA_STREAM_SET,
		.id = stream,
		.now_ns = now_ns,
		.stream = m->stream_cfg[stream]};

	mock_stream_cut(arg, worker, stream);
	return mock_commit(arg, worker, &set, 1);
}

static void mock_stats(void *arg, uint32_t worker, uint32_t stream, struct relay_stats *out)
{
	struct mock_relay *m = arg;

	assert(worker == 3 && m->port[stream / 2]);
	*out = (struct relay_stats){.packets = 10 + stream % 2 + m->more_packets,
		.bytes = 1000,
		.ssrc = stream % 2 ? 0 : 0xdecade,
		.last_packet_ns = m->last_packet_ns,
		.remote = m->remote[stream],
		.confirmed = m->confirmed[stream],
		.roc = m->roc[stream]};
	if (m->stats[stream])
		*out = *m->stats[stream];
}

static uint64_t mock_heard(void *arg, uint32_t worker, uint32_t stream)
{
	const struct mock_relay *m = arg;

	assert(worker == 3 && m->port[stream / 2]);
	return m->stats[stream] ? m->stats[stream]->last_packet_ns : m->last_packet_ns;
}

static struct media_handover mock_handover(void *arg, uint32_t worker, uint32_t stream)
{
	const struct mock_relay *m = arg;

	assert(worker == 3 && m->port[stream / 2]);
	return m->handover[stream];
}

static uint64_t mock_arrived(void *arg, uint32_t worker, uint32_t stream, bool *kernel)
{
	const struct mock_relay *m = arg;

	assert(worker == 3 && m->port[stream / 2]);
	*kernel = m->in_kernel;
	return 10 + stream % 2 + m->more_packets;
}

static void mock_marks_ask(void *arg, uint32_t worker, const uint32_t *ctx, uint32_t n)
{
	struct mock_relay *m = arg;

	assert(worker == 3 && n <= RELAY_ASK_MAX);
	for (uint32_t i = 0; i < n; i++)
		assert(m->ctx[ctx[i]]);
	m->asked += n;
}

static const struct relay_marks *mock_marks(void *arg, uint32_t worker, uint32_t ctx)
{
	struct mock_relay *m = arg;

	assert(worker == 3 && m->ctx[ctx]);
	return m->marks[ctx];
}

static void mock_key_usage(void *arg, uint32_t worker, uint32_t slot, struct media_key_usage *out)
{
	struct mock_relay *m = arg;

	assert(worker == 3 && (slot == 0 || m->key[slot / 2]));
	*out = m->usage[slot / 2];
	out->lifetime = m->master[slot / 2].lifetime;
}

static const struct relay_ops mock_ops = {
	.locals = mock_locals,
	.worker_choose = mock_worker,
	.emergency = mock_emergency,
	.port_take = mock_port_take,
	.port_take_more = mock_port_take_more,
	.port_take_at = mock_port_take_at,
	.port_release = mock_port_release,
	.ctx_take = mock_ctx_take,
	.ctx_release = mock_ctx_release,
	.key_take = mock_key_take,
	.preauth_take = mock_preauth_take,
	.key_release = mock_key_release,
	.commit = mock_commit,
	.stream_cut = mock_stream_cut,
	.stream_restart = mock_stream_restart,
	.stats = mock_stats,
	.heard = mock_heard,
	.handover = mock_handover,
	.arrived = mock_arrived,
	.marks_ask = mock_marks_ask,
	.marks = mock_marks,
	.key_usage = mock_key_usage,
};

void mock_relay_init(struct mock_relay *m)
{
	static const char *const addr[] = {"192.0.2.250", "10.0.0.1", "2001:db8::1"};

	memset(m, 0, sizeof(*m));
	m->relay = (struct relay){.ops = &mock_ops, .arg = m};
	m->fail_with = -ENOSPC;
	m->locals = 3;
	for (uint32_t i = 0; i < m->locals; i++) {
		strcpy(m->local[i].name, i == 1 ? "inside" : "outside");
		assert(endpoint_parse_addr(&m->local[i].addr, str_from(addr[i])) == 0);
		m->local[i].advertised = m->local[i].addr;
	}
	assert(endpoint_parse_addr(&m->local[0].advertised, STR("203.0.113.9")) == 0);
}

bool mock_relay_empty(const struct mock_relay *m)
{
	return m->ports == 0 && m->ctxs == 0 && m->keys == 0;
}

static void check_crypto(const struct mock_relay *m, const struct media_crypto *c)
{
	assert((c->keys == 0) == (c->suite == SUITE_PLAIN) && c->keys <= MEDIA_KEYS);
	for (uint32_t i = 0; i < c->keys; i++) {
		uint32_t k = c->key[i].slot / 2;

		assert(k && m->key[k] && m->master[k].suite == c->suite);
	}
}

void mock_relay_check(const struct mock_relay *m)
{
	for (uint32_t i = 0; i < 2 * MOCK_MAX; i++) {
		const struct media_stream_cfg *s = &m->stream_cfg[i];

		if (!m->stream_set[i])
			continue;
		assert(m->ctx[s->ctx] && m->ctx_set[s->ctx]);
		assert(s->rtp_to == MEDIA_NONE || m->stream_set[s->rtp_to]);
		assert(s->rtcp_to == MEDIA_NONE || m->stream_set[s->rtcp_to]);
	}
	for (uint32_t i = 0; i < MOCK_MAX; i++)
		if (m->ctx_set[i]) {
			check_crypto(m, &m->ctx_cfg[i].rx);
			check_crypto(m, &m->ctx_cfg[i].tx);
		}
}

const struct media_stream_cfg *mock_stream(const struct mock_relay *m, uint16_t port)
{
	uint32_t i = port - PORT_FIRST;

	return i < 2 * MOCK_MAX && m->stream_set[i] ? &m->stream_cfg[i] : NULL;
}

const struct media_ctx_cfg *mock_ctx(const struct mock_relay *m, uint16_t port)
{
	const struct media_stream_cfg *s = mock_stream(m, port);

	return s && m->ctx_set[s->ctx] ? &m->ctx_cfg[s->ctx] : NULL;
}

const struct srtp_master *mock_master(const struct mock_relay *m, uint32_t slot)
{
	return slot && m->key[slot / 2] ? &m->master[slot / 2] : NULL;
}
