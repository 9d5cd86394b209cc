/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pool of local port pairs (RFC 3550 11: an even port and the next odd one). Each local address
 * and worker has a ring of free pairs in random order (RFC 6056: ports must not be guessable).
 * Recently freed pairs wait in a queue, so that late packets of one call do not reach the next.
 * Opens and binds sockets; control thread only. */
#include "steer/ports.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/secmem.h"
#include "steer/own_source.h"

#define PLENTY     50 /* percent that must be free */
#define FD_RESERVE 64 /* descriptors for the log, /proc, netlink, clients */

struct held {
	uint64_t until_ns;
	uint16_t port;
};

enum use { USE_FREE, USE_GIVEN, USE_HELD };

struct share { /* one worker's pairs on one local address */
	uint16_t min;
	uint32_t pairs;
	uint16_t *free; /* ring [pairs] */
	uint32_t free_head, free_n;
	struct held *held; /* ring [pairs], oldest first */
	uint32_t held_head, held_n;
	_Atomic uint8_t *used; /* [pairs]: enum use; ports_given() reads it in other threads */
};

struct ports {
	struct steer_config cfg;
	uint8_t tos;
	uint64_t hold_ns;
	int fd_end;       /* descriptors from here on are kept for other uses */
	uint32_t reserve; /* percent, see ports_reserve() */
	uint32_t used;
	uint64_t foreign; /* pairs skipped because another program uses them */
	uint8_t key[16];  /* key of the random order */
	uint64_t draws;
	struct share *share; /* [locals * workers] */
};

void steer_worker_ports(
	const struct steer_config *cfg, uint32_t worker, uint16_t *min, uint16_t *max)
{
	uint32_t base = cfg->port_min < 2 ? 2 : (cfg->port_min + 1u) & ~1u;
	uint32_t pairs = cfg->port_max >= base ? (cfg->port_max - base + 1u) / 2 : 0;
	uint32_t from = pairs * worker / cfg->workers, to = pairs * (worker + 1) / cfg->workers;

	/* A worker without ports (more workers than pairs) has max < min. */
	*min = (uint16_t)(base + 2 * from);
	*max = (uint16_t)(base + 2 * to - 1);
}

static uint32_t draw(struct ports *p, uint32_t below)
{
	p->draws++;
	return (uint32_t)(hash_siphash(p->key, &p->draws, sizeof(p->draws)) % below);
}

/* --- Rings ------------------------------------------------------------------------------------ */

static uint16_t *free_at(struct share *s, uint32_t i)
{
	return &s->free[(s->free_head + i) % s->pairs];
}

static void free_push(struct share *s, uint16_t port)
{
	*free_at(s, s->free_n++) = port;
}

static uint16_t free_pop(struct share *s)
{
	uint16_t port = *free_at(s, 0);

	s->free_head = (s->free_head + 1) % s->pairs;
	s->free_n--;
	return port;
}

/* Those whose time is over go back, each to a random place. */
/* Frees pairs that were held long enough, each to a random place. If none is free, frees the
 * oldest: a refused call is worse than a stray packet, which does not authenticate. */
static void release(struct ports *p, struct share *s, uint64_t now_ns)
{
	while (s->held_n && (s->held[s->held_head].until_ns <= now_ns || s->free_n == 0)) {
		uint16_t *other, *last;

		free_push(s, s->held[s->held_head].port);
		s->used[(s->held[s->held_head].port - s->min) / 2] = USE_FREE;
		s->held_head = (s->held_head + 1) % s->pairs;
		s->held_n--;
		last = free_at(s, s->free_n - 1);
		other = free_at(s, draw(p, s->free_n));
		if (other != last) {
			uint16_t port = *last;

			*last = *other;
			*other = port;
		}
	}
}

/* --- Sockets ---------------------------------------------------------------------------------- */

static int bind_socket(const struct ports *p, const struct endpoint *local, uint16_t port)
{
	struct endpoint e = *local;
	struct sockaddr_storage sa;
	int tos = p->tos, on = 1, err, fd;
	bool v6 = e.family == AF_INET6;
	socklen_t len;

	fd = socket(e.family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno == ENFILE ? -EMFILE : -errno;
	if (fd >= p->fd_end) {
		close(fd);
		return -EMFILE;
	}
	e.port = port;
	len = endpoint_to_sockaddr(&e, &sa);
	/* Failures of these options are ignored: TOS and timestamps only affect routers and
	 * statistics. */
	if (v6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	(void)setsockopt(
		fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &tos, sizeof(tos));
	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	err = v6 ? own_source_refuse(fd, &p->cfg) : 0;
	if (!err && bind(fd, (struct sockaddr *)&sa, len) == 0)
		return fd;
	err = err ? err : -errno;
	close(fd);
	return err;
}

static int bind_pair(const struct ports *p, uint8_t local, uint16_t port, struct ports_pair *out)
{
	int rtp = bind_socket(p, &p->cfg.local[local], port), rtcp;

	if (rtp < 0)
		return rtp;
	rtcp = bind_socket(p, &p->cfg.local[local], (uint16_t)(port + 1));
	if (rtcp < 0) {
		close(rtp);
		return rtcp;
	}
	*out = (struct ports_pair){
		.rtp = {.port = port, .addr = local},
		.rtcp = {.port = (uint16_t)(port + 1), .addr = local},
		.rtp_fd = rtp,
		.rtcp_fd = rtcp,
	};
	return 0;
}

/* --- The pool --------------------------------------------------------------------------------- */

static int share_init(struct ports *p, struct share *s, uint32_t worker)
{
	uint16_t max;

	steer_worker_ports(&p->cfg, worker, &s->min, &max);
	s->pairs = max > s->min ? (uint32_t)(max - s->min + 1) / 2 : 0;
	s->free = calloc(s->pairs + 1, sizeof(*s->free));
	s->held = calloc(s->pairs + 1, sizeof(*s->held));
	s->used = calloc(s->pairs + 1, sizeof(*s->used));
	if (!s->free || !s->held || !s->used)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->pairs; i++) {
		uint32_t j = draw(p, i + 1); /* Fisher and Yates, inside out */

		s->free[i] = s->free[j];
		s->free[j] = (uint16_t)(s->min + 2 * i);
	}
	s->free_n = s->pairs;
	return 0;
}

static int fd_end(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur > INT32_MAX)
		return INT32_MAX;
	return files.rlim_cur > 4 * FD_RESERVE ? (int)files.rlim_cur - FD_RESERVE
					       : (int)files.rlim_cur;
}

int ports_create(struct ports **out, const struct steer_config *cfg, uint8_t tos, uint64_t hold_ns)
{
	struct ports *p;
	int err;

	if (cfg->locals == 0 || cfg->locals > STEER_MAX_LOCAL || cfg->workers == 0)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->cfg = *cfg;
	p->tos = tos;
	p->hold_ns = hold_ns;
	p->fd_end = fd_end();
	p->share = calloc((size_t)cfg->locals * cfg->workers, sizeof(*p->share));
	err = p->share ? secmem_random(p->key, sizeof(p->key)) : -ENOMEM;
	for (uint32_t i = 0; !err && i < cfg->locals * cfg->workers; i++)
		err = share_init(p, &p->share[i], i % cfg->workers);
	if (err) {
		ports_destroy(p);
		return err;
	}
	*out = p;
	return 0;
}

void ports_destroy(struct ports *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; p->share && i < p->cfg.locals * p->cfg.workers; i++) {
		free(p->share[i].free);
		free(p->share[i].held);
		free(p->share[i].used);
	}
	free(p->share);
	free(p);
}

int ports_take(
	struct ports *p, uint8_t local, uint32_t worker, uint64_t now_ns, struct ports_pair *out)
{
	struct share *s;

	if (local >= p->cfg.locals || worker >= p->cfg.workers)
		return -EINVAL;
	s = &p->share[local * p->cfg.workers + worker];
	release(p, s, now_ns);
	/* Tries each free pair at most once. A pair that another program holds moves to the end, as
	 * it may be free later. */
	for (uint32_t tries = s->free_n; tries; tries--) {
		uint16_t port = free_pop(s);
		int err = bind_pair(p, local, port, out);

		if (err == 0) {
			s->used[(port - s->min) / 2] = USE_GIVEN;
			p->used++;
			return 0;
		}
		free_push(s, port);
		/* A shortage of descriptors has nothing to do with the port. */
		if (err != -EADDRINUSE && err != -EACCES)
			return err;
		p->foreign += err == -EADDRINUSE;
	}
	return -ENOSPC;
}

uint64_t ports_foreign_count(const struct ports *p)
{
	return p->foreign;
}

void ports_reserve(struct ports *p, uint32_t percent)
{
	p->reserve = percent;
}

static uint32_t share_of_all(uint32_t all, uint32_t percent)
{
	return (uint32_t)((uint64_t)all * percent / 100);
}

/* Takes a pair, but leaves this percentage of the pairs and of the descriptors free. */
static int take_but(struct ports *p, uint32_t percent, uint8_t local, uint32_t worker,
	uint64_t now_ns, struct ports_pair *out)
{
	const struct share *s;
	int fd_end_all = p->fd_end, err;

	if (local >= p->cfg.locals || worker >= p->cfg.workers)
		return -EINVAL;
	s = &p->share[local * p->cfg.workers + worker];
	if (s->free_n + s->held_n <= share_of_all(s->pairs, percent))
		return -ENOSPC;
	p->fd_end -= (int)share_of_all((uint32_t)p->fd_end, percent);
	err = ports_take(p, local, worker, now_ns, out);
	p->fd_end = fd_end_all;
	return err;
}

int ports_take_ordinary(
	struct ports *p, uint8_t local, uint32_t worker, uint64_t now_ns, struct ports_pair *out)
{
	return take_but(p, p->reserve, local, worker, now_ns, out);
}

int ports_take_plenty(
	struct ports *p, uint8_t local, uint32_t worker, uint64_t now_ns, struct ports_pair *out)
{
	return take_but(p, p->reserve > PLENTY ? p->reserve : PLENTY, local, worker, now_ns, out);
}

static struct share *share_of(struct ports *p, struct local_port rtp, uint32_t *worker)
{
	for (uint32_t w = 0; rtp.addr < p->cfg.locals && w < p->cfg.workers; w++) {
		struct share *s = &p->share[rtp.addr * p->cfg.workers + w];

		if (rtp.port >= s->min && (uint32_t)(rtp.port - s->min) < 2 * s->pairs) {
			*worker = w;
			return s;
		}
	}
	return NULL;
}

/* Removes the pair from the free ring or the held queue. */
static void share_remove(struct share *s, uint16_t port)
{
	for (uint32_t i = 0; i < s->free_n; i++)
		if (*free_at(s, i) == port) {
			*free_at(s, i) = *free_at(s, 0);
			(void)free_pop(s);
			return;
		}
	for (uint32_t i = 0, kept = 0, n = s->held_n; i < n; i++) {
		struct held h = s->held[(s->held_head + i) % s->pairs];

		if (h.port == port)
			s->held_n--;
		else
			s->held[(s->held_head + kept++) % s->pairs] = h;
	}
}

int ports_take_at(struct ports *p, struct local_port rtp, uint32_t *worker, struct ports_pair *out)
{
	struct share *s = share_of(p, rtp, worker);
	int err;

	if (!s || rtp.port % 2)
		return -ERANGE;
	if (s->used[(rtp.port - s->min) / 2] == USE_GIVEN)
		return -EADDRINUSE;
	err = bind_pair(p, rtp.addr, rtp.port, out);
	if (err)
		return err;
	share_remove(s, rtp.port);
	s->used[(rtp.port - s->min) / 2] = USE_GIVEN;
	p->used++;
	return 0;
}

void ports_put(struct ports *p, struct local_port rtp, uint64_t now_ns)
{
	for (uint32_t w = 0; rtp.addr < p->cfg.locals && w < p->cfg.workers; w++) {
		struct share *s = &p->share[rtp.addr * p->cfg.workers + w];
		uint32_t pair;

		if (rtp.port < s->min || (uint32_t)(rtp.port - s->min) >= 2 * s->pairs)
			continue;
		pair = (uint32_t)(rtp.port - s->min) / 2;
		if (s->used[pair] != USE_GIVEN)
			return;
		s->used[pair] = USE_HELD;
		p->used--;
		s->held[(s->held_head + s->held_n++) % s->pairs] =
			(struct held){now_ns + p->hold_ns, (uint16_t)(s->min + 2 * pair)};
		return;
	}
}

bool ports_has(struct ports *p, struct local_port port)
{
	struct local_port rtp = {.port = port.port & 0xfffe, .addr = port.addr};
	uint32_t worker;
	struct share *s = share_of(p, rtp, &worker);

	return s && s->used[(rtp.port - s->min) / 2] != USE_FREE;
}

bool ports_given(struct ports *p, struct local_port port)
{
	struct local_port rtp = {.port = port.port & 0xfffe, .addr = port.addr};
	uint32_t worker;
	struct share *s = share_of(p, rtp, &worker);

	return s &&
		atomic_load_explicit(&s->used[(rtp.port - s->min) / 2], memory_order_relaxed) ==
		USE_GIVEN;
}

uint32_t ports_free_count(const struct ports *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->cfg.locals * p->cfg.workers; i++)
		n += p->share[i].free_n + p->share[i].held_n;
	return n;
}

uint32_t ports_descriptors_count(const struct ports *p)
{
	int next = eventfd(0, EFD_CLOEXEC);

	if (next >= 0)
		close(next);
	return next < 0 || next >= p->fd_end ? 0 : (uint32_t)(p->fd_end - next) / 2;
}

uint32_t ports_used_count(const struct ports *p)
{
	return p->used;
}
