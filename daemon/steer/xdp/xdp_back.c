/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replaces sockets of interfaces that disappear and return (steer/xdp/xdp_back.h). rtnetlink
 * reports a removed interface, whose sockets are dead. They leave the program's map, so packets use
 * the ordinary sockets meanwhile. When an interface of that name is up, the program is attached,
 * and each worker gets sockets by its mailbox. The worker puts them into the map once they have
 * slots for receiving. Failures are retried each second and at every announcement. */
#include "steer/xdp/xdp_back.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/thread.h"
#include "host/rtnl.h"
#include "packet/arena.h"

#define AGAIN_MS 1000

/* Mailbox of one worker, in both directions. */
struct box {
	_Alignas(
		CACHE_LINE) _Atomic uint32_t full; /* bit n: there are new sockets of interface n */
	_Atomic(struct umem_dev *) fresh[HUB_DEVS_MAX];
	_Atomic(struct umem_dev *) dead; /* a list: the worker pushes, the thread takes all */
	const struct arena *arena;       /* constant from here on; NULL: has no sockets */
	bool zerocopy;
};

struct lost { /* thread's */
	bool gone, told;
	uint64_t served; /* bit n: worker n has new sockets, or needs none */
};

struct back {
	struct steer_hub *h;
	struct box *box; /* [workers] */
	struct lost lost[HUB_DEVS_MAX];
	uint32_t dead; /* sets of sockets that workers have not returned yet */
	struct mnl_socket *news;
	int stop;
	pthread_t thread;
	bool running;
};

/* --- Mailboxes -------------------------------------------------------------------------------- */

static void put_fresh(struct back *b, uint32_t worker, struct umem_dev *fresh)
{
	struct box *box = &b->box[worker];
	struct umem_dev *unused =
		atomic_exchange_explicit(&box->fresh[fresh->dev], fresh, memory_order_acq_rel);

	if (unused)
		umem_dev_close(unused);
	else
		b->dead++;
	atomic_fetch_or_explicit(&box->full, 1u << fresh->dev, memory_order_release);
	hand_wake(b->h->hand, worker);
}

struct umem_dev *back_take(struct back *b, uint32_t worker)
{
	struct box *box = &b->box[worker];
	struct umem_dev *fresh = NULL;
	uint32_t full;

	while (!fresh && (full = atomic_load_explicit(&box->full, memory_order_acquire))) {
		uint32_t dev = (uint32_t)__builtin_ctz(full);

		/* Order matters: sockets put from here on are seen next time. */
		atomic_fetch_and_explicit(&box->full, ~(1u << dev), memory_order_acq_rel);
		fresh = atomic_exchange_explicit(&box->fresh[dev], NULL, memory_order_acq_rel);
	}
	return fresh;
}

void back_give(struct back *b, uint32_t worker, struct umem_dev *dead)
{
	struct box *box = &b->box[worker];

	dead->next = atomic_load_explicit(&box->dead, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(
		&box->dead, &dead->next, dead, memory_order_release, memory_order_relaxed))
		;
}

static uint32_t bury(struct box *box)
{
	struct umem_dev *d = atomic_exchange_explicit(&box->dead, NULL, memory_order_acquire);
	uint32_t n = 0;

	for (; d; n++) {
		struct umem_dev *next = d->next;

		umem_dev_close(d);
		d = next;
	}
	return n;
}

/* --- Interfaces ------------------------------------------------------------------------------- */

static void on_news(void *arg, const struct rtnl_event *e)
{
	struct back *b = arg;
	struct steer_hub *h = b->h;

	if (e->what != RTNL_LINK || !e->link.gone)
		return;
	for (uint32_t i = 0; i < h->devs; i++) {
		if (h->dev[i].ifindex != e->link.ifindex)
			continue;
		hub_dev_gone(&h->dev[i]);
		log_warn(
			"xdp: %s was removed. If it returns, ordinary sockets serve it until xdp can use it "
			"again",
			h->dev[i].name);
		b->lost[i] = (struct lost){.gone = true};
	}
}

static int serve(struct back *b, uint32_t dev, uint32_t worker, char *err, size_t err_len)
{
	struct box *box = &b->box[worker];
	const struct umem_place place = {
		.h = b->h, .worker = worker, .a = box->arena, .may_zerocopy = box->zerocopy};
	struct umem_dev *fresh = NULL;
	int res;

	if (!box->arena || (b->lost[dev].served >> worker & 1))
		return 0;
	res = umem_dev_open(&fresh, &place, dev, err, err_len);
	if (res)
		return res;
	b->lost[dev].served |= 1ull << worker;
	if (fresh)
		put_fresh(b, worker, fresh);
	return 0;
}

/* Returns whether to retry without an announcement. */
static bool bring_back(struct back *b, uint32_t dev)
{
	struct lost *l = &b->lost[dev];
	struct hub_dev *d = &b->h->dev[dev];
	char err[256];
	int res = hub_dev_back(b->h, d, err, sizeof(err));

	if (res == -ENODEV)
		return false;
	for (uint32_t w = 0; w < b->h->workers && !res; w++)
		res = serve(b, dev, w, err, sizeof(err));
	if (res) {
		if (!l->told)
			log_err("xdp: %s is back, but cannot be used: %s", d->name, err);
		l->told = true;
		return true;
	}
	l->gone = false;
	log_info("xdp: %s is back (%s)", d->name, d->skb ? "behind the driver" : "in the driver");
	return false;
}

/* --- Thread ----------------------------------------------------------------------------------- */

static void *run(void *arg)
{
	struct back *b = arg;
	struct pollfd p[2] = {{.fd = b->stop, .events = POLLIN},
		{.fd = mnl_socket_get_fd(b->news), .events = POLLIN}};
	bool again = false;

	(void)caps_limit(caps_here(CAPS_XDP));
	for (;;) {
		poll(p, 2, again || b->dead ? AGAIN_MS : -1);
		if (p[0].revents)
			return NULL;
		/* Announcements were lost: check programs instead. */
		if (rtnl_read(b->news, on_news, b))
			for (uint32_t i = 0; i < b->h->devs; i++)
				if (!b->lost[i].gone && !hub_dev_attached(&b->h->dev[i]))
					on_news(b,
						&(struct rtnl_event){.what = RTNL_LINK,
							.link = {.gone = true,
								.ifindex = b->h->dev[i].ifindex}});
		again = false;
		for (uint32_t i = 0; i < b->h->devs; i++)
			if (b->lost[i].gone && bring_back(b, i))
				again = true;
		for (uint32_t w = 0; w < b->h->workers; w++)
			b->dead -= bury(&b->box[w]);
	}
}

int back_start(struct back *b)
{
	int err = b->running ? 0 : thread_start(&b->thread, NULL, "xdp-links", run, b);

	b->running = err == 0;
	return err;
}

void back_stop(struct back *b)
{
	uint64_t one = 1;

	if (!b->running)
		return;
	(void)!write(b->stop, &one, sizeof(one));
	pthread_join(b->thread, NULL);
	(void)!read(b->stop, &one, sizeof(one));
	b->running = false;
}

void back_worker(struct back *b, uint32_t worker, const struct arena *a, bool zerocopy)
{
	b->box[worker].arena = a;
	b->box[worker].zerocopy = zerocopy;
}

int back_create(struct back **out, struct steer_hub *h)
{
	struct back *b = calloc(1, sizeof(*b));
	int res = -ENOMEM;

	if (!b)
		return -ENOMEM;
	b->h = h;
	b->stop = -1;
	b->box = lines_alloc(h->workers, sizeof(*b->box));
	if (!b->box)
		goto fail;
	b->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	res = b->stop < 0 ? -errno : rtnl_open(&b->news, RTNL_HEAR_LINKS);
	if (res)
		goto fail;
	*out = b;
	return 0;
fail:
	back_destroy(b);
	return res;
}

void back_destroy(struct back *b)
{
	if (!b)
		return;
	back_stop(b);
	for (uint32_t w = 0; b->box && w < b->h->workers; w++) {
		struct umem_dev *fresh;

		while ((fresh = back_take(b, w)))
			umem_dev_close(fresh);
		bury(&b->box[w]);
	}
	if (b->news)
		mnl_socket_close(b->news);
	if (b->stop >= 0)
		close(b->stop);
	free(b->box);
	free(b);
}
