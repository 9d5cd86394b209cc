// SPDX-License-Identifier: GPL-2.0
/* A bell that also waits. One system call sends a burst and sleeps until the next one, and packets
 * wake the worker without an eventfd and epoll. Other descriptors of the worker are in its epoll: a
 * permanent entry in that file's wait queue ends the wait. A caller that waits holds neither SRCU
 * nor the mutex bells, so that this ring and others can be closed. */
#include <linux/file.h>
#include <linux/magic.h>
#include <linux/poll.h>
#include <linux/sched.h>

#include "ring.h"

struct look {
	poll_table table;
	struct nfx_ring *r;
};

/* In any context, under the lock of the wait queue. */
static int polled(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	struct nfx_ring *r = container_of(entry, struct nfx_ring, poll_entry);

	WRITE_ONCE(r->polled, true);
	rcuwait_wake_up(&r->sleeper);
	return 0;
}

static void look_at(struct file *file, wait_queue_head_t *head, poll_table *table)
{
	struct nfx_ring *r = container_of(table, struct look, table)->r;

	if (r->poll_head) /* an epoll has one */
		return;
	r->poll_head = head;
	add_wait_queue(head, &r->poll_entry);
}

void nfx_ring_wait_init(struct nfx_ring *r)
{
	rcuwait_init(&r->sleeper);
	init_waitqueue_func_entry(&r->poll_entry, polled);
	r->polled = true; /* it may have events already */
}

/* A reference to another file, such as its owner's netlink socket, could keep a ring open. */
static bool is_epoll(const struct file *f)
{
	return file_inode(f)->i_sb->s_magic == ANON_INODE_FS_MAGIC &&
	       !strcmp(f->f_path.dentry->d_name.name, "[eventpoll]");
}

int nfx_ring_wait_open(struct nfx_ring *r, u32 fd)
{
	struct look look = {.r = r};

	r->poll = fget(fd);
	if (!r->poll)
		return -EBADF;
	if (!is_epoll(r->poll))
		return -EINVAL;
	init_poll_funcptr(&look.table, look_at);
	vfs_poll(r->poll, &look.table);
	return r->poll_head ? 0 : -EINVAL;
}

void nfx_ring_wait_close(struct nfx_ring *r)
{
	if (r->poll_head)
		remove_wait_queue(r->poll_head, &r->poll_entry);
	if (r->poll)
		fput(r->poll);
}

/* Reports events of the epoll. A later event ends the next wait, or the worker finds it in the
 * epoll. From here on a wake-up signals the eventfd. One that still woke the sleeper has cleared
 * armed, but possibly not yet control->armed. */
static void tell_woken(struct nfx_ring *r)
{
	WRITE_ONCE(r->control->woken, xchg(&r->polled, false) ? NFX_WOKEN_POLL : 0);
	smp_mb();
	if (!atomic_read(&r->armed))
		WRITE_ONCE(r->control->armed, 0);
}

void nfx_ring_wait(struct nfx_ring *r)
{
	(void)rcuwait_wait_event(&r->sleeper,
				 !atomic_read(&r->armed) || READ_ONCE(r->polled) ||
					 READ_ONCE(r->closed),
				 TASK_INTERRUPTIBLE);
	spin_lock_bh(&r->lock);
	if (!READ_ONCE(r->closed))
		tell_woken(r);
	spin_unlock_bh(&r->lock);
	smp_store_release(&r->waits, false);
}

/* The end of the ring has woken the caller, which only has to return. */
void nfx_ring_wait_synchronize(const struct nfx_ring *r)
{
	while (smp_load_acquire(&r->waits))
		schedule_timeout_uninterruptible(1);
}
