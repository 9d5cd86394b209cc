/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See offload_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "offload_rig.h"

struct off_rig rig;

static bool relays(const struct steer_config *cfg)
{
	(void)cfg;
	return rig.can;
}

static int relayed(
	const struct steer_config *cfg, struct local_port local, struct steer_relayed *out)
{
	(void)cfg;
	*out = rig.kernel[local.port - 30000];
	return rig.unread ? -ENOENT : 0;
}

static int relayed_all(const struct steer_config *cfg, uint32_t worker,
	void (*put)(void *arg, const struct steer_relayed *r), void *arg)
{
	(void)cfg;
	(void)worker;
	for (int i = 0; i < 16; i++)
		if (rig.kernel[i].now && ++rig.reads)
			put(arg, &rig.kernel[i]);
	return 0;
}

static bool tells; /* events that the kernel sends by itself, such as silence */

static int events_fd(const struct steer_config *cfg)
{
	(void)cfg;
	return tells ? 0 : -1;
}

static const struct steer_ops OPS = {.name = "mock",
	.relays = relays,
	.relayed = relayed,
	.relayed_all = relayed_all,
	.events_fd = events_fd};

static const struct bridge_sent *sent(void *arg, uint32_t worker)
{
	(void)arg;
	(void)worker;
	return &rig.sent;
}

static void look(void *arg, uint32_t worker, uint32_t stream, struct offload_look *out)
{
	(void)arg;
	(void)worker;
	*out = rig.look[stream];
}

/* Acts as a worker whose kernel obeys at once. */
int off_push(void *arg, uint32_t worker, const struct worker_cmd *cmd, uint32_t n)
{
	(void)arg;
	(void)worker;
	if (rig.refuse)
		return -EAGAIN;
	for (uint32_t i = 0; i < n; i++) {
		assert_true(rig.cmds < CMDS);
		rig.cmd[rig.cmds++] = cmd[i];
		if (cmd[i].kind == WORKER_RELAY) {
			rig.kernel[cmd[i].relay.local.port - 30000].now = true;
			rig.kernel[cmd[i].relay.local.port - 30000].id = cmd[i].relay.id;
			rig.kernel[cmd[i].relay.local.port - 30000].has_seq = false;
		} else if (cmd[i].kind == WORKER_MEDIA) {
			assert_int_equal(cmd[i].media.type, MEDIA_CTX_RESUME);
		} else {
			assert_int_equal(cmd[i].kind, WORKER_UNRELAY);
			rig.kernel[cmd[i].local.port - 30000].now = false;
		}
	}
	return 0;
}

struct endpoint off_at(uint8_t host, uint16_t port)
{
	return (struct endpoint){.addr = {192, 0, 2, host}, .port = port, .family = AF_INET};
}

void off_commit(const struct media_cmd *cmd, uint32_t n)
{
	struct worker_cmd before[CMDS];
	uint32_t made = offload_before(rig.o, 0, cmd, n, before, CMDS);

	assert_int_equal(off_push(NULL, 0, before, made), 0);
	for (uint32_t i = 0; i < n; i++)
		bridge_sent_note(&rig.sent, &cmd[i]);
	offload_pushed(rig.o, 0, cmd, n);
}

struct media_cmd off_stream_cmd(uint32_t id)
{
	struct media_cmd c = {.type = MEDIA_STREAM_SET, .id = id};

	c.stream = (struct media_stream_cfg){.local = {.port = (uint16_t)(30000 + id)},
		.rtp = true,
		.ctx = id == A ? 0 : 1,
		.rtp_to = id == A ? B : A,
		.rtcp_to = MEDIA_NONE,
		.learning = MEDIA_LEARN_IMMEDIATE,
		.tos = 184};
	return c;
}

struct media_cmd off_rtcp_cmd(uint32_t id)
{
	struct media_cmd c = off_stream_cmd(id == A_RTCP ? A : B);

	c.id = id;
	c.stream.local.port = (uint16_t)(30000 + id);
	c.stream.rtp = false;
	c.stream.rtcp = true;
	c.stream.rtp_to = MEDIA_NONE;
	c.stream.rtcp_to = id == A_RTCP ? B_RTCP : A_RTCP;
	return c;
}

struct media_cmd off_ctx_cmd(uint32_t id, enum srtp_suite_id rx, enum srtp_suite_id tx)
{
	struct media_cmd c = {.type = MEDIA_CTX_SET, .id = id};

	c.ctx.rx.suite = rx;
	c.ctx.tx.suite = tx;
	return c;
}

void off_tick(void)
{
	rig.now_ns += NS_PER_SEC;
	rig.cmds = 0;
	offload_tick(rig.o, rig.now_ns);
}

/* Creates a plain call between two terminals with learned addresses. */
int off_setup(void **state)
{
	struct offload_config cfg = {.ops = &OPS,
		.steer = &rig.steer,
		.workers = 1,
		.max_stream = STREAMS,
		.max_ctx = CTXS,
		.sent = sent,
		.look = look,
		.push = off_push};
	struct media_cmd cmd[4];

	(void)state;
	memset(&rig, 0, sizeof(rig));
	assert_int_equal(bridge_sent_init(&rig.sent, STREAMS, CTXS), 0);
	rig.now_ns = 100 * NS_PER_SEC;
	rig.steer.local[0] = off_at(1, 0);
	rig.steer.locals = 1;
	assert_int_equal(offload_create(&rig.o, &cfg), -EOPNOTSUPP);
	rig.can = true;
	assert_int_equal(offload_create(&rig.o, &cfg), 0);
	cmd[0] = off_ctx_cmd(0, SUITE_PLAIN, SUITE_PLAIN);
	cmd[1] = off_ctx_cmd(1, SUITE_PLAIN, SUITE_PLAIN);
	cmd[2] = off_stream_cmd(A);
	cmd[3] = off_stream_cmd(B);
	off_commit(cmd, 4);
	assert_int_equal(rig.cmds, 0);
	rig.look[A] = (struct offload_look){
		.packets = 10, .ssrc = 0xa, .confirmed = true, .remote = off_at(10, 4000)};
	rig.look[B] = (struct offload_look){
		.packets = 10, .ssrc = 0xb, .confirmed = true, .remote = off_at(11, 5000)};
	return 0;
}

int off_setup_told(void **state)
{
	int res;

	tells = true;
	res = off_setup(state);
	tells = false;
	return res;
}

int off_teardown(void **state)
{
	(void)state;
	offload_destroy(rig.o);
	bridge_sent_fini(&rig.sent);
	return 0;
}

uint32_t off_in_kernel(void)
{
	return (uint32_t)rig.kernel[A].now + (uint32_t)rig.kernel[B].now;
}
