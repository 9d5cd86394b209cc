// SPDX-License-Identifier: GPL-2.0
/* A bell that also waits. One system call sends a burst and sleeps until the next one, and packets
 * wake the worker without an eventfd and epoll. All else that the worker waits for is in its epoll:
 * a standing entry in that file's wait queue ends the wait. A caller that waits holds neither SRCU
 * nor bells, so that other rings and this one can be closed. */
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

/* Of other files a reference could keep a ring open, such as one to its owner's netlink socket. */
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

/* After the wake-up, or before it. An event that comes now is in the epoll, where the worker looks
 * next, or ends the next wait. */
static void tell_woken(struct nfx_ring *r)
{
	WRITE_ONCE(r->control->woken, xchg(&r->polled, false) ? NFX_WOKEN_POLL : 0);
}

void nfx_ring_wait(struct nfx_ring *r)
{
	(void)rcuwait_wait_event(&r->sleeper,
				 !atomic_read(&r->armed) || READ_ONCE(r->polled) ||
					 READ_ONCE(r->closed),
				 TASK_INTERRUPTIBLE);
	tell_woken(r);
	/* From here on a wake-up signals the eventfd. One that still took the sleeper has cleared
	 * armed before, but may not have told the worker yet. */
	smp_mb();
	if (!atomic_read(&r->armed))
		WRITE_ONCE(r->control->armed, 0);
	smp_store_release(&r->waits, false);
}

/* The caller was woken by the ring's end. It does nothing but return. */
void nfx_ring_wait_synchronize(const struct nfx_ring *r)
{
	while (smp_load_acquire(&r->waits))
		schedule_timeout_uninterruptible(1);
}
