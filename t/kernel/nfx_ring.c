/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nfx's worker of a packet ring (kernel-module/uapi/nf_xcipher_ring.h). Commands of "ring":
 *
 *   open SLOTS SENDS [NAME=VALUE]  opens a ring; the values replace attributes of ATTRS;
 *                                  shared, file, unmapped, readonly: wrong memory; memlock: the
 *                                  limit; nobody: without CAP_NET_ADMIN
 *   prepare SLOTS SENDS            the memory of a ring, which register [NAME=VALUE] opens
 *   stall FILE, map                nfx_stall.c
 *   run FROM,PORT,TO,PORT NAME=N   forwards all packets until the next line on standard input;
 *                                  wake, window (ns), max (packets per bell); wait: its bells wait;
 *                                  lose: one wake-up of
 *                                  N is lost, and a timer of up to "again" ms replaces it
 *   wait N [MS]                    waits until N packets are published in all
 *   bell NAME=N                    one bell: flags, sends, released, taken, wake, window, reserved
 *   send FROM,PORT,TO,PORT NAME=N  one packet: off, len, tos, family, ifindex, reserved;
 *                                  times: that many equal ones with one bell
 *   look                           the packets not taken: number, length, emergency
 *   state                          published, state, counters
 *   fork                           a child writes to its copy of all areas
 *   hostile MS SEED FROM,PORT,TO,PORT  random shared memory and bells
 *   close                          RING_CLOSE
 *   drop                           frees all memory and descriptors without closing the ring */
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/capability.h>
#include <linux/genetlink.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nfx.h"
#include "nfx_ring.h"

#define STRIDE 2048u
#define FIRST  128u
#define ROOM   1600u
#define PAGE   4096u
#define UNSENT 999u /* no errno */

static const char *const STATS[] = {
#define X(name, text) [NFX_R_##name] = #name,
	NFX_RING_STATS(X)
#undef X
};

static const struct {
	const char *name;
	uint16_t attr;
	bool wide;
} ATTRS[] = {
	{"control", NFX_A_RING_CONTROL, true},
	{"memory", NFX_A_RING_MEMORY, true},
	{"length", NFX_A_RING_LENGTH, true},
	{"slots", NFX_A_RING_SLOTS, false},
	{"first", NFX_A_RING_FIRST, false},
	{"stride", NFX_A_RING_STRIDE, false},
	{"room", NFX_A_RING_ROOM, false},
	{"sends", NFX_A_RING_SENDS, false},
	{"event", NFX_A_RING_EVENT_FD, false},
	{"bell", NFX_A_RING_BELL_FD, false},
	{"poll", NFX_A_RING_POLL_FD, false},
};
#define ATTR_COUNT (sizeof(ATTRS) / sizeof(ATTRS[0]))

/* The value of NAME=VALUE in the rest of a line, or the default. */
static uint64_t value(const char *rest, const char *name, uint64_t otherwise)
{
	size_t len = strlen(name);

	for (const char *p = rest; p && (p = strstr(p, name)); p += len)
		if ((p == rest || p[-1] == ' ') && p[len] == '=')
			return strtoull(p + len + 1, NULL, 0);
	return otherwise;
}

static void *area(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

uint32_t nfx_published(const struct nfx_worker *w)
{
	return __atomic_load_n(&w->control->published, __ATOMIC_ACQUIRE);
}

/* --- Opening ---------------------------------------------------------------------------------- */

static int worker_alloc(struct nfx_worker *w, uint32_t slots, uint32_t sends)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	w->slots = slots;
	w->sends = sends;
	w->memory_len = ((size_t)slots * STRIDE + FIRST + PAGE - 1) / PAGE * PAGE;
	w->control_len = (nfx_ring_control_len(slots, sends) + PAGE - 1) / PAGE * PAGE;
	w->memory = area(w->memory_len);
	w->control = area(w->control_len);
	if (!w->memory || !w->control)
		return -ENOMEM;
	w->recv = (struct nfx_recv *)((uint8_t *)w->control + nfx_ring_recv_off());
	w->send = (struct nfx_send *)((uint8_t *)w->control + nfx_ring_send_off(slots));
	w->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	w->bell = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->wake, &ev) ? -errno : 0;
}

static void worker_drop(struct nfx *x)
{
	struct nfx_worker *w = x->ring;

	if (!w)
		return;
	munmap(w->memory, w->memory_len);
	munmap(w->control, w->control_len);
	close(w->epoll);
	close(w->wake);
	close(w->bell);
	free(w);
	x->ring = NULL;
}

static int ask(struct nfx *x, struct nfx_worker *w, const char *rest, const char **said)
{
	struct nlmsghdr *h = nfx_request(x, NFX_CMD_RING_OPEN, NLM_F_ACK);
	uint64_t v[ATTR_COUNT] = {(uintptr_t)w->control, (uintptr_t)w->memory, w->memory_len,
		w->slots, FIRST, STRIDE, ROOM, w->sends, (uint32_t)w->wake, (uint32_t)w->bell,
		(uint32_t)w->epoll};

	for (size_t i = 0; i < ATTR_COUNT; i++) {
		uint64_t n = value(rest, ATTRS[i].name, v[i]);

		if (ATTRS[i].wide)
			mnl_attr_put_u64(h, ATTRS[i].attr, n);
		else if (n != UINT32_MAX) /* without it */
			mnl_attr_put_u32(h, ATTRS[i].attr, (uint32_t)n);
	}
	x->ring_number = UINT32_MAX;
	return nfx_ask(x, h, true, said);
}

static int drop_capability(unsigned which)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d))
		return -errno;
	d[0].effective &= ~(1u << which);
	return syscall(SYS_capset, &h, d) ? -errno : 0;
}

/* From now on RLIMIT_MEMLOCK counts, and allows this many bytes. */
static int limit_lock(uint64_t bytes)
{
	struct rlimit r = {bytes, bytes};

	return setrlimit(RLIMIT_MEMLOCK, &r) ? -errno : drop_capability(CAP_IPC_LOCK);
}

/* Replaces memory by a private mapping of a file, of which every page is written to. */
static void file_map(uint8_t *at, size_t len)
{
	FILE *f = tmpfile();

	if (!f || ftruncate(fileno(f), (off_t)len) ||
		mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fileno(f), 0) ==
			MAP_FAILED) {
		perror("tmpfile");
		exit(1);
	}
	memset(at, 1, len);
	fclose(f);
}

static int do_prepare(struct nfx *x, char **rest)
{
	uint32_t slots = (uint32_t)strtoul(*rest, rest, 0),
		 sends = (uint32_t)strtoul(*rest, rest, 0);

	*rest += strspn(*rest, " ");
	worker_drop(x);
	x->ring = calloc(1, sizeof(*x->ring));
	return x->ring ? worker_alloc(x->ring, slots, sends) : -ENOMEM;
}

/* With the memory that "prepare" allocated. */
static int do_register(struct nfx *x, const char *rest, const char **said)
{
	struct nfx_worker *w = x->ring;
	int err = 0;

	if (value(rest, "memlock", 0))
		err = limit_lock(value(rest, "memlock", 0));
	if (value(rest, "nobody", 0))
		err = drop_capability(CAP_NET_ADMIN);
	err = err ? err : ask(x, w, rest, said);
	w->number = x->ring_number;
	w->taken = err ? w->taken : 0;
	return err;
}

static int do_open(struct nfx *x, char *rest, const char **said)
{
	int err = do_prepare(x, &rest);
	struct nfx_worker *w = x->ring;

	if (!w)
		return err;
	if (value(rest, "shared", 0)) /* memory of a kind that the module must refuse */
		mmap(w->memory, w->memory_len, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (value(rest, "file", 0)) /* private, and written to: its pages are anonymous already */
		file_map(w->memory, w->memory_len);
	if (value(rest, "unmapped", 0))
		munmap(w->memory + w->memory_len - PAGE, PAGE);
	if (value(rest, "readonly", 0))
		mprotect(w->memory, PAGE, PROT_READ);
	err = err ? err : do_register(x, rest, said);
	if (err)
		worker_drop(x);
	return err;
}

/* --- Bells and packets ------------------------------------------------------------------------ */

int nfx_ring_bell(struct nfx_worker *w, const struct nfx_bell *b)
{
	w->control->bell = *b;
	if (setsockopt(w->bell, IPPROTO_IP, NFX_SO_BELL + (int)w->number, NULL, 0) < 0)
		return -errno;
	return 0;
}

bool nfx_ring_ends(struct nfx_send *s, const char *text)
{
	char a[2][INET6_ADDRSTRLEN];
	unsigned p[2];

	memset(s, 0, sizeof(*s));
	if (sscanf(text, " %45[^,],%u,%45[^,],%u", a[0], &p[0], a[1], &p[1]) != 4)
		return false;
	s->family = strchr(a[0], ':') ? AF_INET6 : AF_INET;
	s->port = htons((uint16_t)p[0]);
	s->to_port = htons((uint16_t)p[1]);
	return inet_pton(s->family, a[0], s->addr) == 1 && inet_pton(s->family, a[1], s->to) == 1;
}

static uint32_t slot_off(const struct nfx_worker *w, uint32_t n)
{
	return FIRST + (n & (w->slots - 1)) * STRIDE;
}

struct run {
	struct nfx_send ends;
	uint32_t max, wakes, bells, got, failed, largest, lose, lost, again;
	bool waits;
	unsigned seed;
	struct nfx_bell bell;
};

/* One burst. Returns whether the worker may sleep, or a negative errno. */
static int run_once(struct nfx_worker *w, struct run *r)
{
	uint32_t n = nfx_published(w) - w->taken;
	int err;

	n = n < r->max ? n : r->max;
	for (uint32_t i = 0; i < n; i++) {
		const struct nfx_recv *in = &w->recv[(w->taken + i) & (w->slots - 1)];

		w->send[i] = r->ends;
		w->send[i].off = slot_off(w, w->taken + i);
		w->send[i].len = in->len;
		w->send[i].tos = in->tos;
		w->send[i].result = UNSENT;
	}
	w->taken += n;
	r->got += n;
	r->largest = n > r->largest ? n : r->largest;
	r->bells++;
	r->bell.flags = NFX_BELL_ARM | (r->waits ? NFX_BELL_WAIT : 0);
	r->bell.sends = n;
	r->bell.released = r->bell.taken = w->taken;
	err = nfx_ring_bell(w, &r->bell);
	for (uint32_t i = 0; i < n; i++)
		r->failed += w->send[i].result && w->send[i].result != UNSENT;
	while (err && n && w->send[--n].result == UNSENT) { /* the ring ended within the bell */
		w->taken--;
		r->got--;
	}
	return err ? err : (int)__atomic_load_n(&w->control->armed, __ATOMIC_ACQUIRE);
}

/* As if the eventfd had not been signalled: the ring is not armed any more, and the worker takes
 * nothing until its own timer. Returns whether standard input ends it. */
static bool run_deaf(struct nfx_worker *w, struct run *r)
{
	struct epoll_event ev;
	int ms = (int)((unsigned)rand_r(&r->seed) % (r->again + 1));

	r->lost++;
	return epoll_wait(w->epoll, &ev, 1, ms) == 1 && ev.data.u32;
}

/* An event of the epoll ended the wait. Returns whether standard input ends it. */
static bool run_polled(struct nfx_worker *w)
{
	struct epoll_event ev;

	while (epoll_wait(w->epoll, &ev, 1, 0) == 1)
		if (ev.data.u32)
			return true;
	return false;
}

/* A worker that moves to another processor may overtake its own packets, which wait at the former
 * one on virtual links. */
static void stay(bool on)
{
	int now = sched_getcpu();
	cpu_set_t here;

	CPU_ZERO(&here);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (!on || i == now)
			CPU_SET(i, &here);
	sched_setaffinity(0, sizeof(here), &here);
}

static int do_run(struct nfx *x, char *rest)
{
	struct nfx_worker *w = x->ring;
	struct run r = {.max = (uint32_t)value(rest, "max", w->sends),
		.lose = (uint32_t)value(rest, "lose", 0),
		.again = (uint32_t)value(rest, "again", 20),
		.waits = value(rest, "wait", 0) != 0,
		.seed = (unsigned)value(rest, "seed", 1),
		.bell = {.wake_packets = (uint32_t)value(rest, "wake", 1),
			.window_ns = (uint32_t)value(rest, "window", 0)}};
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = 1};
	int sleeps;

	if (!nfx_ring_ends(&r.ends, rest))
		return -EINVAL;
	printf("running=1\n= 0\n");
	fflush(stdout);
	epoll_ctl(w->epoll, EPOLL_CTL_ADD, 0, &ev); /* the next line ends it */
	stay(true);
	while ((sleeps = run_once(w, &r)) >= 0 && !w->control->state) {
		if (r.waits && w->control->woken & NFX_WOKEN_POLL && run_polled(w))
			break;
		if (!r.waits && epoll_wait(w->epoll, &ev, 1, sleeps ? -1 : 0) != 1)
			continue;
		if (!r.waits && ev.data.u32)
			break;
		r.wakes++;
		if (r.lose && (unsigned)rand_r(&r.seed) % r.lose == 0 && run_deaf(w, &r))
			break;
	}
	r.waits = false;
	while (sleeps >= 0 && w->taken != nfx_published(w) && !w->control->state)
		sleeps = run_once(w, &r); /* what a lost wake-up left */
	stay(false);
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, 0, &ev);
	printf("got=%u wakes=%u lost=%u bells=%u failed=%u largest=%u ended=%d\n", r.got, r.wakes,
		r.lost, r.bells, r.failed, r.largest, sleeps < 0 ? -sleeps : 0);
	return 0;
}

static int do_wait(struct nfx_worker *w, const char *rest)
{
	uint32_t n = 0, ms = 60000;

	sscanf(rest, " %u %u", &n, &ms);
	for (uint32_t t = 0; t < ms; t++) {
		if (nfx_published(w) == n)
			return 0;
		poll(NULL, 0, 1);
	}
	return -ETIMEDOUT;
}

static int do_bell(struct nfx_worker *w, const char *rest)
{
	struct nfx_bell b = {.flags = (uint32_t)value(rest, "flags", 0),
		.sends = (uint32_t)value(rest, "sends", 0),
		.taken = (uint32_t)value(rest, "taken", w->taken),
		.wake_packets = (uint32_t)value(rest, "wake", 1),
		.window_ns = (uint32_t)value(rest, "window", 0),
		.reserved = {(uint32_t)value(rest, "reserved", 0), 0}};
	uint32_t number = w->number;
	int err;

	b.released = (uint32_t)value(rest, "released", b.taken);
	w->number = (uint32_t)value(rest, "number", number);
	err = nfx_ring_bell(w, &b);
	w->number = number;
	if (!err)
		w->taken = b.taken;
	printf("armed=%u\n", w->control->armed);
	return err;
}

static int do_send(struct nfx_worker *w, const char *rest)
{
	uint32_t times = (uint32_t)value(rest, "times", 1);
	struct nfx_bell b = {.sends = times, .released = w->taken, .taken = w->taken};
	struct nfx_send *s = &w->send[0];
	int err;

	if (!nfx_ring_ends(s, rest))
		return -EINVAL;
	s->off = (uint32_t)value(rest, "off", FIRST);
	s->len = (uint32_t)value(rest, "len", 100);
	s->tos = (uint8_t)value(rest, "tos", 0);
	s->family = (uint8_t)value(rest, "family", s->family);
	s->ifindex = (uint32_t)value(rest, "ifindex", 0);
	s->reserved[1] = (uint32_t)value(rest, "reserved", 0);
	s->result = UNSENT;
	for (uint32_t i = 1; i < times && i < w->sends; i++)
		w->send[i] = *s;
	err = nfx_ring_bell(w, &b);
	printf("result=%u\n", s->result);
	return err;
}

static int do_look(struct nfx_worker *w)
{
	for (uint32_t n = w->taken; n != nfx_published(w); n++) {
		const struct nfx_recv *r = &w->recv[n & (w->slots - 1)];
		const uint8_t *p = w->memory + slot_off(w, n);
		char from[INET6_ADDRSTRLEN], addr[INET6_ADDRSTRLEN];

		printf("number=%u len=%u emergency=%u tos=%u cookie=%llu first=%u last=%u age=%d "
		       "from=%s,%u addr=%s,%u ifindex=%u\n",
			n, r->len, r->flags & NFX_RECV_EMERGENCY, r->tos,
			(unsigned long long)r->cookie, p[0], r->len ? p[r->len - 1] : 0,
			r->t_ns != 0, inet_ntop(r->family, r->from, from, sizeof(from)),
			ntohs(r->from_port), inet_ntop(r->family, r->addr, addr, sizeof(addr)),
			ntohs(r->port), r->ifindex);
	}
	return 0;
}

static int do_state(const struct nfx_worker *w)
{
	printf("published=%u taken=%u armed=%u state=%u ", nfx_published(w), w->taken,
		w->control->armed, w->control->state);
	for (int i = 0; i < NFX_R_COUNT; i++)
		printf("%s=%llu ", STATS[i], (unsigned long long)w->control->stats[i]);
	printf("\n");
	return 0;
}

/* --- Commands --------------------------------------------------------------------------------- */

int nfx_ring(struct nfx *x, char *text, const char **said)
{
	char *rest = text + strcspn(text, " \n");

	if (*rest)
		*rest++ = 0;
	rest[strcspn(rest, "\n")] = 0;
	if (strcmp(text, "open") == 0)
		return do_open(x, rest, said);
	if (strcmp(text, "prepare") == 0)
		return do_prepare(x, &rest);
	if (!x->ring)
		return -ENOENT;
	if (strcmp(text, "register") == 0)
		return do_register(x, rest, said);
	if (strcmp(text, "stall") == 0)
		return nfx_ring_stall(rest);
	if (strcmp(text, "map") == 0)
		return nfx_ring_map();
	if (strcmp(text, "run") == 0)
		return do_run(x, rest);
	if (strcmp(text, "wait") == 0)
		return do_wait(x->ring, rest);
	if (strcmp(text, "bell") == 0)
		return do_bell(x->ring, rest);
	if (strcmp(text, "send") == 0)
		return do_send(x->ring, rest);
	if (strcmp(text, "look") == 0)
		return do_look(x->ring);
	if (strcmp(text, "state") == 0)
		return do_state(x->ring);
	if (strcmp(text, "fork") == 0)
		return nfx_ring_fork(x->ring);
	if (strcmp(text, "hostile") == 0)
		return nfx_ring_hostile(x->ring, rest);
	if (strcmp(text, "close") == 0)
		return nfx_ask(x, nfx_request(x, NFX_CMD_RING_CLOSE, NLM_F_ACK), false, said);
	if (strcmp(text, "drop") != 0)
		return -EINVAL;
	worker_drop(x);
	return 0;
}
