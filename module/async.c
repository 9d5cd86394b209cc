/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The asynchronous exchange. A SIP worker suspends the transaction, puts the request into a slot of
 * shared memory, sends it and is free. Each slot belongs to one receiver process, which owns two
 * sockets (IPv4, IPv6, opened before the fork so that workers send from them). Only that process
 * reads them, retries, fails over, and continues the transaction in the script's route. The worker
 * that took a slot writes it until it is BUSY, then only its receiver. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <core/cfg/cfg_struct.h>
#include <core/dprint.h>
#include <core/kemi.h>
#include <core/locking.h>
#include <core/mem/shm.h>
#include <core/pt.h>
#include <core/route.h>
#include <core/action.h>
#include <core/sr_module.h>
#include <modules/tm/tm_load.h>

#include "call.h"
#include "forks.h"
#include "settings.h"

#define RECEIVERS_MAX 16
#define TICK_MS       20  /* while requests are under way */
#define IDLE_MS       100 /* otherwise; shorter than a request's first timeout */

enum { FREE, BUSY };

struct slot {
	int state; /* atomic: released by the process that hands the slot over */
	uint32_t generation;
	bool detached; /* without a suspended transaction */
	unsigned tm_index, tm_label;
	char *block; /* shm: datagram, call-id, tags; len bytes, wiped when freed */
	size_t block_len;
	void *forks; /* shm: name of a suspended request's route, until it is continued */
	int fork_count;
	struct context c;
};

struct receiver {
	gen_lock_t lock; /* of the fields below */
	int free_count;
	int *free; /* numbers of free slots */
	int in_use;
	int fd[2]; /* IPv4, IPv6; same numbers in all processes */
};

static struct shared {
	char start
		/* Differs from run to run, so that no reply to an earlier run matches. */
		[12];
	struct receiver receiver[RECEIVERS_MAX];
	struct slot slot[];
} * A;

extern struct tm_binds tmb;

/* The slot that is being continued, for resume(): it runs inside t_continue(). */
static struct {
	struct slot *s;
	const struct wire_reply *reply;
	bool ran;
} current;

static int resume(struct sip_msg *msg, char *a, char *b);
static ksr_cmd_export_t resume_cmd = {.name = "xcipher_resume", .function = resume};
static struct action resume_action;

int async_init(void)
{
	int per = settings.slots / settings.receivers;
	size_t size = sizeof(*A) + (size_t)settings.slots * sizeof(struct slot);

	A = shm_malloc(size);
	if (!A)
		return -1;
	memset(A, 0, size);
	for (int i = 0; i < settings.receivers; i++) {
		struct receiver *r = &A->receiver[i];

		r->fd[0] = r->fd[1] = -1;
		r->free = shm_malloc((size_t)per * sizeof(int));
		if (!r->free || !lock_init(&r->lock))
			return -1;
		for (int k = 0; k < per; k++)
			r->free[r->free_count++] = k * settings.receivers + i;
	}
	resume_action.type = MODULE0_T;
	resume_action.count = 2;
	resume_action.val[0].type = MODEXP_ST;
	resume_action.val[0].u.data = &resume_cmd;
	register_procs(settings.receivers);
	cfg_register_child(settings.receivers);
	return 0;
}

void async_destroy(void)
{
	if (!A)
		return;
	for (int i = 0; i < settings.slots; i++) {
		if (A->slot[i].block)
			shm_free(A->slot[i].block);
		forks_free(A->slot[i].forks);
	}
	for (int i = 0; i < settings.receivers; i++)
		if (A->receiver[i].free)
			shm_free(A->receiver[i].free);
	shm_free(A);
	A = NULL;
}

int async_sockets(void)
{
	uint32_t start;
	int on = 1;

	if (getrandom(&start, sizeof(start), 0) != sizeof(start))
		return -1;
	snprintf(A->start, sizeof(A->start), "%08x", start);
	for (int i = 0; i < settings.receivers; i++) {
		int *fd = A->receiver[i].fd;

		fd[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		fd[1] = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd[0] < 0)
			return -1;
		/* A missing node is detected by its host's ICMP message, not by silence. */
		setsockopt(fd[0], SOL_IP, IP_RECVERR, &on, sizeof(on));
		if (fd[1] >= 0)
			setsockopt(fd[1], SOL_IPV6, IPV6_RECVERR, &on, sizeof(on));
	}
	return 0;
}

int async_in_use(void)
{
	int n = 0;

	for (int i = 0; A && i < settings.receivers; i++)
		n += A->receiver[i].in_use;
	return n;
}

/* --- Slots ------------------------------------------------------------------------------------ */

static struct slot *slot_take(void)
{
	int first = process_no % settings.receivers;
	struct slot *s = NULL;

	for (int i = 0; i < settings.receivers && !s; i++) {
		struct receiver *r = &A->receiver[(first + i) % settings.receivers];

		lock_get(&r->lock);
		if (r->free_count) {
			s = &A->slot[r->free[--r->free_count]];
			r->in_use++;
		}
		lock_release(&r->lock);
	}
	return s;
}

static struct receiver *owner(const struct slot *s)
{
	return &A->receiver[(s - A->slot) % settings.receivers];
}

static void slot_free(struct slot *s)
{
	struct receiver *r = owner(s);

	if (s->block) {
		wire_wipe(s->block, s->block_len);
		shm_free(s->block);
	}
	s->block = NULL;
	forks_free(s->forks);
	s->forks = NULL;
	s->generation++;
	__atomic_store_n(&s->state, FREE, __ATOMIC_RELEASE);
	lock_get(&r->lock);
	r->free[r->free_count++] = (int)(s - A->slot);
	r->in_use--;
	lock_release(&r->lock);
}

static char *put(char *at, struct text *t)
{
	memcpy(at, t->s, t->len);
	t->s = at;
	return at + t->len;
}

/* The datagram also stays in buf, because the slot's copy belongs to the receiver once the slot is
 * BUSY. */
static int slot_fill(
	struct slot *s, const struct context *c, const struct wire_request *r, char *buf)
{
	char *at;
	int n;

	s->c = *c;
	snprintf(s->c.job.cookie, COOKIE_LEN, "%s_%x_%x", A->start, (unsigned)(s - A->slot),
		s->generation);
	n = buf ? wire_write(buf, WIRE_MAX, sign_now(),
			  (struct text){s->c.job.cookie, strlen(s->c.job.cookie)}, r)
		: -ENOMEM;
	if (n > 0) {
		s->block_len = (size_t)n + c->call_id.len + c->from_tag.len + c->to_tag.len +
			c->via_branch.len;
		s->block = shm_malloc(s->block_len);
		if (s->block) {
			memcpy(s->block, buf, (size_t)n);
			s->c.job.msg = s->block;
			s->c.job.len = (size_t)n;
			at = put(s->block + n, &s->c.call_id);
			at = put(at, &s->c.from_tag);
			at = put(at, &s->c.to_tag);
			put(at, &s->c.via_branch);
		}
	}
	return s->block ? n : -ENOMEM;
}

/* --- The worker's part ------------------------------------------------------------------------ */

static bool transmit(const struct receiver *r, const struct target *t, const char *p, size_t len)
{
	int fd = r->fd[t->addr.ss_family == AF_INET6];

	/* The first attempt may fail with the error of an earlier datagram. */
	for (int i = 0; i < 2; i++)
		if (sendto(fd, p, len, 0, (const struct sockaddr *)&t->addr, t->addr_len) >= 0 ||
			errno == EAGAIN)
			return true;
	return false;
}

/* Sends to one node after the other until one send succeeds. STEP_DONE: no node is left. */
static enum step send_on(struct slot *s)
{
	enum step step = STEP_SEND;

	while (step == STEP_SEND) {
		if (transmit(owner(s), job_target(&s->c.job), s->c.job.msg, s->c.job.len)) {
			job_sent(&s->c.job, now_ms());
			return STEP_WAIT;
		}
		step = job_unreachable(&s->c.job);
	}
	return step;
}

/* tm keeps one suspension per transaction, and while a reply is suspended it drops all others of
 * the transaction. It cannot suspend a 200 that the callee repeats because the ACK is late. */
bool async_possible(struct sip_msg *msg)
{
	struct cell *t = tmb.t_gett();
	bool has = t && t != T_UNDEFINED;

	if (msg->first_line.type == SIP_REPLY)
		return has && !(t->flags & T_ASYNC_SUSPENDED) && t->uas.status < 200 &&
			get_route_type() == TM_ONREPLY_ROUTE;
	if (msg->REQ_METHOD & (METHOD_ACK | METHOD_CANCEL))
		return false; /* without a transaction of their own */
	if (has)
		return !(t->flags & T_ASYNC_SUSPENDED) && t->uas.status < 200;
	return get_route_type() == REQUEST_ROUTE;
}

bool async_route(struct text name)
{
	char copy[ROUTE_LEN];
	int n;

	if (!name.len || sr_kemi_eng_get())
		return true;
	snprintf(copy, sizeof(copy), "%.*s", (int)name.len, name.s);
	n = route_lookup(&main_rt, copy);
	return n >= 0 && main_rt.rlist[n];
}

/* 1; 0: a retransmission, which tm has answered or absorbed; or negative. */
static int have_transaction(struct sip_msg *msg)
{
	struct cell *t = tmb.t_gett();

	return t && t != T_UNDEFINED ? 1 : tmb.t_newtran(msg);
}

/* The reply may arrive before this function returns. So the slot is handed over first, and this
 * function sends its own copy. If sending fails, the receiver retries later, or gets the ICMP
 * error. */
static enum verdict hand_over(struct sip_msg *msg, struct slot *s, const char *buf, size_t len)
{
	const struct receiver *r = owner(s);
	struct target t = *job_target(&s->c.job);
	int err = 0;

	s->detached = !msg;
	if (msg && msg->first_line.type == SIP_REQUEST)
		s->forks = forks_save(&s->fork_count);
	if (msg)
		err = tmb.t_suspend(msg, &s->tm_index, &s->tm_label);
	/* The request was canceled meanwhile, and tm has answered it: the script must not go on. A
	 * reply that crossed the CANCEL fails instead, so that its sender is told. */
	if (err > 0 && msg->first_line.type == SIP_REQUEST) {
		slot_free(s);
		return V_SUSPENDED;
	}
	if (err)
		return V_INTERNAL;
	job_sent(&s->c.job, now_ms());
	if (msg)
		counter_inc(counters.suspended);
	__atomic_store_n(&s->state, BUSY, __ATOMIC_RELEASE);
	if (!transmit(r, &t, buf, len))
		LM_DBG("not sent to %s\n", t.id);
	return V_SUSPENDED;
}

enum verdict async_start(struct sip_msg *msg, struct context *c, const struct wire_request *r)
{
	enum verdict v = V_INTERNAL;
	struct slot *s;
	char *buf;
	int n;

	/* No node: return at once, without a suspension. */
	if (job_start(&c->job, c->call_id, c->policy.emergency) == STEP_DONE)
		return call_finish(msg, c, NULL);
	if (msg) {
		n = have_transaction(msg);
		if (n <= 0)
			return n == 0 ? V_SUSPENDED : V_INTERNAL;
	}
	s = slot_take();
	if (!s) {
		counter_inc(counters.slots_full);
		return V_OK;
	}
	buf = malloc(WIRE_MAX);
	n = buf ? slot_fill(s, c, r, buf) : -ENOMEM;
	if (n > 0)
		v = hand_over(msg, s, buf, (size_t)n);
	if (v != V_SUSPENDED) {
		LM_ERR("%s: the transaction cannot be suspended\n", op_name(c->job.op));
		slot_free(s);
	}
	if (n > 0)
		wire_wipe(buf, (size_t)n);
	free(buf);
	return v;
}

/* --- The receiver's part ---------------------------------------------------------------------- */

/* Replaces the script's route: applies the result to the message as a synchronous function would,
 * then runs that route. */
static int resume(struct sip_msg *msg, char *a, char *b)
{
	sr_kemi_eng_t *keng = sr_kemi_eng_get();
	str name = {current.s->c.route, 0}, event = str_init("xcipher:resume");
	int n;

	(void)a;
	(void)b;
	current.ran = true;
	call_finish(msg, &current.s->c, current.reply);
	if (msg->first_line.type == SIP_REQUEST) {
		forks_restore(msg, current.s->forks, current.s->forks ? current.s->fork_count : 0);
		current.s->forks = NULL;
	}
	name.len = (int)strlen(name.s);
	if (keng)
		return sr_kemi_route(keng, msg, get_route_type(), &name, &event) < 0 ? -1 : 1;
	n = route_lookup(&main_rt, current.s->c.route);
	if (n < 0 || !main_rt.rlist[n]) {
		LM_ERR("there is no route[%s] to continue with\n", current.s->c.route);
		return -1;
	}
	run_top_route(main_rt.rlist[n], msg, NULL);
	return 1;
}

static void conclude(struct slot *s, const struct wire_reply *reply)
{
	current.s = s;
	current.reply = reply;
	current.ran = false;
	if (s->detached)
		call_finish(NULL, &s->c, reply);
	else if (tmb.t_continue(s->tm_index, s->tm_label, &resume_action) < 0)
		LM_DBG("call %.*s: its transaction is gone\n", (int)s->c.call_id.len,
			s->c.call_id.s);
	/* The call was cancelled while its offer was in flight, so no delete will follow. A delete
	 * for the CANCEL may have arrived before the offer. */
	if (!s->detached && !current.ran)
		call_recall(&s->c);
	if (!s->detached && !current.ran && op_begins(s->c.job.op) && reply &&
		reply->result == WIRE_OK && !s->c.to_tag.len)
		call_undo(&s->c);
	current.s = NULL;
	slot_free(s);
}

/* Loosened flags and a new cookie: reuse the slot. */
static bool loosen(struct slot *s, const struct wire_reply *reply)
{
	char cookie[COOKIE_LEN], *buf, *block;
	struct context *c = &s->c;
	size_t after = s->block_len - c->job.len;
	int n;

	if (!c->policy.emergency || c->retried || !reply || reply->result != WIRE_ERROR)
		return false;
	buf = malloc(WIRE_MAX);
	snprintf(cookie, sizeof(cookie), "%s_%x_%x", A->start, (unsigned)(s - A->slot),
		s->generation + 1);
	n = buf ? call_loosen(c, reply, buf, WIRE_MAX, cookie) : 0;
	block = n > 0 ? shm_malloc((size_t)n + after) : NULL;
	if (block) {
		memcpy(block, buf, (size_t)n);
		memcpy(block + n, s->block + c->job.len, after);
		c->call_id.s = block + n;
		c->from_tag.s = c->call_id.s + c->call_id.len;
		c->to_tag.s = c->from_tag.s + c->from_tag.len;
		c->via_branch.s = c->to_tag.s + c->to_tag.len;
		wire_wipe(s->block, s->block_len);
		shm_free(s->block);
		s->block = block;
		s->block_len = (size_t)n + after;
		s->generation++;
		strcpy(c->job.cookie, cookie);
		c->job.msg = block;
		c->job.len = (size_t)n;
		c->job.sent = 0;
	}
	if (n > 0)
		wire_wipe(buf, (size_t)n);
	free(buf);
	return block && send_on(s) == STEP_WAIT;
}

static struct slot *slot_of(int self, struct text cookie)
{
	size_t n = strlen(A->start);
	unsigned number, generation;
	char copy[COOKIE_LEN];
	struct slot *s;

	if (cookie.len >= sizeof(copy))
		return NULL;
	memcpy(copy, cookie.s, cookie.len);
	copy[cookie.len] = 0;
	if (strncmp(copy, A->start, n) || sscanf(copy + n, "_%x_%x", &number, &generation) != 2)
		return NULL;
	if (number >= (unsigned)settings.slots || (int)number % settings.receivers != self)
		return NULL;
	s = &A->slot[number];
	if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != BUSY || s->generation != generation ||
		strcmp(s->c.job.cookie, copy))
		return NULL;
	return s;
}

static void on_datagram(int self, const char *p, size_t len, const struct sockaddr_storage *from)
{
	struct slot *s = slot_of(self, wire_cookie(settings.keys, p, len));
	struct wire_reply reply;
	enum step step;

	/* Only the node that was asked may answer. */
	if (!s || !nodes_same_address(job_target(&s->c.job), from)) {
		counter_inc(counters.stray_replies);
		return;
	}
	if (!job_genuine(&s->c.job, p, len))
		return;
	wire_read(&reply, p, len, s->c.job.op == OP_QUERY, s->c.from_tag, s->c.to_tag);
	step = job_reply(&s->c.job, &reply);
	if (step == STEP_SEND && send_on(s) == STEP_DONE)
		step = STEP_DONE;
	if (step == STEP_DONE && !loosen(s, &reply))
		conclude(s, &reply);
	wire_fini(&reply);
}

static void on_unreachable(int self, const struct sockaddr_storage *to)
{
	for (int i = self; i < settings.slots; i += settings.receivers) {
		struct slot *s = &A->slot[i];

		if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != BUSY ||
			!nodes_same_address(job_target(&s->c.job), to))
			continue;
		if (job_unreachable(&s->c.job) == STEP_DONE || send_on(s) == STEP_DONE)
			conclude(s, NULL);
	}
}

static void read_errors(int self, int fd)
{
	char data[64], control[512];
	struct sockaddr_storage to;
	struct iovec iov = {data, sizeof(data)};
	struct msghdr m = {.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};

	/* The address of the message is the one that could not be reached. */
	while (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) {
		on_unreachable(self, &to);
		m.msg_namelen = sizeof(to);
		m.msg_controllen = sizeof(control);
	}
}

static void tick(int self)
{
	uint64_t now = now_ms();

	for (int i = self; i < settings.slots; i += settings.receivers) {
		struct slot *s = &A->slot[i];
		enum step step;

		if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != BUSY)
			continue;
		step = s->c.job.sent ? job_tick(&s->c.job, now) : job_unreachable(&s->c.job);
		if (step == STEP_SEND)
			step = send_on(s);
		if (step == STEP_DONE)
			conclude(s, NULL);
	}
}

static void receive(int self, int fd, char *buf)
{
	struct sockaddr_storage from;
	socklen_t len;
	ssize_t n;

	for (int i = 0; i < 64; i++) {
		len = sizeof(from);
		n = recvfrom(fd, buf, WIRE_MAX, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
		if (n < 0)
			return;
		on_datagram(self, buf, (size_t)n, &from);
		wire_wipe(buf, (size_t)n);
	}
}

static void __attribute__((noreturn)) receiver_loop(int self)
{
	struct receiver *r = &A->receiver[self];
	struct pollfd p[2] = {
		{.fd = r->fd[0], .events = POLLIN}, {.fd = r->fd[1], .events = POLLIN}};
	char *buf = malloc(WIRE_MAX);
	uint64_t ticked = 0;

	if (!buf)
		exit(1);
	for (;;) {
		poll(p, 2, r->in_use ? TICK_MS : IDLE_MS);
		for (int i = 0; i < 2; i++) {
			if (p[i].revents & POLLERR)
				read_errors(self, p[i].fd);
			if (p[i].revents & POLLIN)
				receive(self, p[i].fd, buf);
		}
		if (now_ms() >= ticked + TICK_MS && r->in_use) {
			ticked = now_ms();
			tick(self);
		}
		cfg_update();
	}
}

int async_fork(void)
{
	for (int i = 0; i < settings.receivers; i++) {
		int pid = fork_process(PROC_XWORKER, "xcipher receiver", 1);

		if (pid < 0)
			return -1;
		if (pid == 0) {
			if (cfg_child_init())
				exit(1);
			receiver_loop(i);
		}
	}
	return 0;
}
