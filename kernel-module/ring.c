// SPDX-License-Identifier: GPL-2.0
/* Opens and closes rings. The memory is the worker's own, pinned as for AF_XDP. So no file refers
 * to the module: an open ring does not prevent unloading, and mappings need no rules. Only private
 * anonymous memory is accepted, because its pages belong to nobody else: no file is written to or
 * truncated.
 * A process can hold the lock of its address space for ever, by reading a file of FUSE through
 * /proc/self/mem. Opening runs under generic netlink's locks, and closing in the module's work
 * queue, so neither waits for that lock. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <net/sock.h>

#include "compat.h"
#include "ring.h"

static int wish_check(const struct nfx_ring_wish *w, struct netlink_ext_ack *extack)
{
	u64 last = (u64)w->first + (u64)(w->slots - 1) * w->stride + w->room;

	if (w->slots < NFX_RING_MIN_SLOTS || w->slots > NFX_RING_MAX_SLOTS ||
	    !is_power_of_2(w->slots))
		return REFUSE(extack, EINVAL, "a ring's slots must be a power of two, 16 to 65536");
	if (!w->sends || w->sends > NFX_RING_MAX_SENDS)
		return REFUSE(extack, EINVAL, "a ring needs 1 to 65536 descriptors to send");
	if (!w->length || w->length > NFX_RING_MAX_LENGTH || !PAGE_ALIGNED(w->length))
		return REFUSE(extack, EINVAL, "a ring's memory must be whole pages, at most 256 MiB");
	if (!PAGE_ALIGNED(w->memory) || !PAGE_ALIGNED(w->control))
		return REFUSE(extack, EINVAL, "a ring's areas must begin with a page");
	if (!w->stride || w->stride > NFX_RING_MAX_STRIDE || w->stride % NFX_RING_ALIGN ||
	    w->first % NFX_RING_ALIGN)
		return REFUSE(extack, EINVAL, "a ring's slots must be aligned to 64 bytes");
	if (!w->room || w->room > w->stride)
		return REFUSE(extack, EINVAL, "a ring's payloads would overlap");
	if (last > w->length)
		return REFUSE(extack, EINVAL, "a ring's slots exceed its memory");
	return 0;
}

/* --- Pinned memory ---------------------------------------------------------------------------- */

static void area_free(struct nfx_area *a)
{
	if (a->map)
		vunmap(a->map);
	if (a->page)
		unpin_user_pages_dirty_lock(a->page, a->pages, true);
	kvfree(a->page);
}

/* Faults of other memory could wait for a process (FUSE), while this one holds netlink's locks. A
 * userfaultfd cannot make us wait, because pages are pinned under the lock of the address space. */
static bool is_anonymous(struct mm_struct *mm, u64 at, u64 end)
{
	while (at < end) {
		struct vm_area_struct *vma = find_vma(mm, at);

		if (!vma || vma->vm_start > at || !vma_is_anonymous(vma))
			return false;
		at = vma->vm_end;
	}
	return true;
}

static int area_pin(struct nfx_area *a, u64 at, u32 pages)
{
	int got = -EINVAL;

	a->page = kvmalloc_array(pages, sizeof(*a->page), GFP_KERNEL_ACCOUNT);
	if (!a->page)
		return -ENOMEM;
	if (!mmap_read_trylock(current->mm))
		return -EAGAIN;
	if (is_anonymous(current->mm, at, at + (u64)pages * PAGE_SIZE))
		got = nfx_pin_pages(at, pages, FOLL_WRITE | FOLL_LONGTERM, a->page);
	mmap_read_unlock(current->mm);
	if (got < 0)
		return got;
	a->pages = got;
	if (a->pages != pages)
		return -EFAULT;
	for (u32 i = 0; i < pages; i++)
		if (!PageAnon(a->page[i]))
			return -EINVAL;
	a->map = vmap(a->page, pages, VM_MAP, PAGE_KERNEL);
	return a->map ? 0 : -ENOMEM;
}

/* Charges RLIMIT_MEMLOCK of the user, as AF_XDP does, and not of the process: the ring belongs to a
 * socket, which can outlive the process. A reference to the credentials keeps the user, because not
 * all kernels of Debian 12 export free_uid(). */
static int user_charge(struct nfx_ring *r, long pages)
{
	const struct cred *cred = current_cred();
	unsigned long most = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	long old = atomic_long_read(&cred->user->locked_vm);

	do {
		if ((unsigned long)(old + pages) > most)
			return -EPERM;
	} while (!atomic_long_try_cmpxchg(&cred->user->locked_vm, &old, old + pages));
	r->charged = get_cred(cred);
	return 0;
}

static int charge(struct nfx_ring *r, u32 pages)
{
	int err = capable(CAP_IPC_LOCK) ? 0 : user_charge(r, pages);

	if (err)
		return err;
	mmgrab(current->mm);
	r->mm = current->mm;
	r->pinned = pages;
	atomic64_add(pages, &r->mm->pinned_vm);
	return 0;
}

static void uncharge(struct nfx_ring *r)
{
	if (!r->mm)
		return;
	atomic64_sub(r->pinned, &r->mm->pinned_vm);
	mmdrop(r->mm);
	if (!r->charged)
		return;
	atomic_long_sub(r->pinned, &r->charged->user->locked_vm);
	put_cred(r->charged);
}

/* --- Opening ---------------------------------------------------------------------------------- */

static int bell_hold(struct nfx_ring *r, u32 fd, struct netlink_ext_ack *extack)
{
	int err;
	struct socket *sock = sockfd_lookup(fd, &err);

	if (!sock)
		return REFUSE(extack, EBADF, "a ring's doorbell is not a socket");
	/* Sockets of the other families do not pass their options to netfilter. */
	if (sock->sk->sk_family == AF_INET && sock->sk->sk_type == SOCK_DGRAM &&
	    sock_net(sock->sk) == r->nn->net) {
		sock_hold(sock->sk);
		r->bell = sock->sk;
	}
	sockfd_put(sock);
	return r->bell ? 0 : REFUSE(extack, EINVAL,
		"a ring's doorbell must be an IPv4 datagram socket of this namespace");
}

static int wake_hold(struct nfx_ring *r, u32 fd, struct netlink_ext_ack *extack)
{
	struct eventfd_ctx *wake = eventfd_ctx_fdget(fd);

	if (IS_ERR(wake))
		return REFUSE(extack, EBADF, "a ring's event descriptor is not an eventfd");
	r->wake = wake;
	return 0;
}

static int poll_hold(struct nfx_ring *r, const struct nfx_ring_wish *w,
		     struct netlink_ext_ack *extack)
{
	if (w->with_poll && nfx_ring_wait_open(r, w->poll_fd))
		return REFUSE(extack, EBADF, "a ring's poll descriptor is not an epoll");
	return 0;
}

static int memory_hold(struct nfx_ring *r, const struct nfx_ring_wish *w,
		       struct netlink_ext_ack *extack)
{
	u32 control = PAGE_ALIGN(nfx_ring_control_len(w->slots, w->sends)) >> PAGE_SHIFT;
	u32 memory = w->length >> PAGE_SHIFT;
	int err;

	if (charge(r, control + memory))
		return REFUSE(extack, EPERM, "a ring's memory exceeds RLIMIT_MEMLOCK");
	err = area_pin(&r->control_area, w->control, control);
	err = err ? err : area_pin(&r->memory_area, w->memory, memory);
	if (err == -EINVAL || err == -EFAULT)
		return REFUSE(extack, EINVAL, "a ring needs private anonymous memory");
	if (err == -EAGAIN)
		return REFUSE(extack, EAGAIN, "the process changes its memory maps: try again");
	return err;
}

static void ring_init(struct nfx_ring *r, const struct nfx_ring_wish *w)
{
	r->slots = w->slots;
	r->ordinary = w->slots - w->slots / 8;
	r->first = w->first;
	r->stride = w->stride;
	r->room = w->room;
	r->sends = w->sends;
	r->length = w->length;
	r->memory = r->memory_area.map;
	r->control = (struct nfx_ring_control *)r->control_area.map;
	r->recv = (struct nfx_recv *)(r->control_area.map + nfx_ring_recv_off());
	r->send = (struct nfx_send *)(r->control_area.map + nfx_ring_send_off(w->slots));
	memset(r->control, 0, sizeof(*r->control));
}

int nfx_ring_prepare(struct nfx_ring **out, struct nfx_net *nn, const struct nfx_ring_wish *wish,
		     struct netlink_ext_ack *extack)
{
	int err = wish_check(wish, extack);
	struct nfx_ring *r;

	if (err)
		return err;
	if (!current->mm)
		return REFUSE(extack, EINVAL, "a ring needs a process");
	r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	if (!r)
		return -ENOMEM;
	r->nn = nn;
	spin_lock_init(&r->lock);
	mutex_init(&r->bells);
	nfx_ring_wake_init(r);
	nfx_ring_wait_init(r);
	err = bell_hold(r, wish->bell_fd, extack);
	err = err ? err : wake_hold(r, wish->event_fd, extack);
	err = err ? err : poll_hold(r, wish, extack);
	err = err ? err : memory_hold(r, wish, extack);
	if (err) {
		nfx_ring_free(r);
		return err;
	}
	ring_init(r, wish);
	*out = r;
	return 0;
}

int nfx_ring_attach(struct nfx_net *nn, struct nfx_owner *o, struct nfx_ring *r)
{
	lockdep_assert_held(&nn->lock);
	while (r->number < NFX_RING_MAX && rcu_access_pointer(nn->rings[r->number]))
		r->number++;
	if (r->number == NFX_RING_MAX)
		return -ENOSPC;
	r->owner = o;
	rcu_assign_pointer(nn->rings[r->number], r);
	rcu_assign_pointer(o->ring, r);
	return 0;
}

u32 nfx_ring_number(const struct nfx_ring *r)
{
	return r->number;
}

/* --- Closing ---------------------------------------------------------------------------------- */

void nfx_ring_free(struct nfx_ring *r)
{
	hrtimer_cancel(&r->timer);
	nfx_ring_wait_close(r);
	area_free(&r->control_area);
	area_free(&r->memory_area);
	uncharge(r);
	if (r->wake)
		eventfd_ctx_put(r->wake);
	if (r->bell)
		sock_put(r->bell);
	kfree(r);
}

/* No packet uses the ring any more. */
static void free_work(struct work_struct *work)
{
	struct nfx_ring *r = container_of(to_rcu_work(work), struct nfx_ring, free);

	nfx_bell_synchronize();
	nfx_ring_wait_synchronize(r);
	nfx_ring_free(r);
}

/* When it returns, nothing writes to shared memory any more, because the worker may open another
 * ring in it. Runs under generic netlink's mutex, so it waits for no RCU grace period: any user
 * could make all others wait. */
static void stop(struct nfx_ring *r)
{
	WRITE_ONCE(r->closed, true);
	smp_mb(); /* a bell that is about to wait sees it, or nfx_ring_wake() sees the bell */
	/* A bell in progress ends, because it uses the owner. Then packets and callers in progress
	 * end. Later ones see that it is closed. */
	mutex_lock(&r->bells);
	mutex_unlock(&r->bells);
	spin_lock_bh(&r->lock);
	spin_unlock_bh(&r->lock);
	hrtimer_cancel(&r->timer);
}

/* Packets whose slots the worker did not return are lost, unless it reads them now. */
void nfx_ring_close(struct nfx_net *nn, struct nfx_owner *o, u32 state)
{
	struct nfx_ring *r = rcu_dereference_protected(o->ring, lockdep_is_held(&nn->lock));

	if (!r)
		return;
	RCU_INIT_POINTER(o->ring, NULL);
	RCU_INIT_POINTER(nn->rings[r->number], NULL);
	stop(r);
	nn->gone[NFX_S_RING_ENDED] += r->head - r->released;
	o->ring_lost += r->head - r->released;
	nfx_ring_tell(r);
	WRITE_ONCE(r->control->armed, 0);
	smp_store_release(&r->control->state, state); /* the counters before it */
	nfx_ring_wake(r);
	INIT_RCU_WORK(&r->free, free_work);
	queue_rcu_work(nfx_wq, &r->free);
}

void nfx_rings_exit(struct nfx_net *nn)
{
	struct nfx_owner *o;

	mutex_lock(&nn->lock);
	list_for_each_entry(o, &nn->owners, node)
		nfx_ring_close(nn, o, NFX_RING_GONE);
	mutex_unlock(&nn->lock);
}
