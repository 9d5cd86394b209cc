/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See caps.h. Uses capset(2) and prctl(2) directly: libcap would be a dependency for four calls. */
#include "base/caps.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t caps_here(uint64_t want)
{
	struct rlimit lock;

	if (want & CAPS_BIT(CAP_BPF) && prctl(PR_CAPBSET_READ, CAP_BPF) < 0)
		want |= CAPS_BIT(CAP_SYS_ADMIN);
	if (getrlimit(RLIMIT_MEMLOCK, &lock) || lock.rlim_cur != RLIM_INFINITY)
		want |= CAPS_BIT(CAP_IPC_LOCK);
	return want;
}

int caps_get(uint64_t *permitted, uint64_t *inheritable)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	if (syscall(SYS_capget, &h, d))
		return -errno;
	*permitted = d[0].permitted | (uint64_t)d[1].permitted << 32;
	*inheritable = d[0].inheritable | (uint64_t)d[1].inheritable << 32;
	return 0;
}

int caps_set(uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2];

	for (int i = 0; i < 2; i++)
		d[i] = (struct __user_cap_data_struct){.effective = (uint32_t)(permitted >> 32 * i),
			.permitted = (uint32_t)(permitted >> 32 * i),
			.inheritable = (uint32_t)(inheritable >> 32 * i)};
	return syscall(SYS_capset, &h, d) ? -errno : 0;
}

/* Without CAP_SETPCAP the bounding set stays; no_new_privs then keeps programs from gaining its
 * capabilities. */
static void limit_bounding(uint64_t keep)
{
	for (int cap = 0; cap < 64 && prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		if (!(keep & CAPS_BIT(cap)))
			(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

int caps_limit(uint64_t keep)
{
	uint64_t permitted, inheritable;
	int err = caps_get(&permitted, &inheritable);

	limit_bounding(keep);
	/* The kernel removes capabilities that leave these sets from the ambient set, too. */
	return err ? err : caps_set(permitted & keep, inheritable & keep);
}

struct task {
	uint64_t keep;
	int (*fn)(void *arg);
	void *arg;
	int res;
};

static void *run(void *arg)
{
	struct task *t = arg;
	stack_t before;

	(void)caps_limit(t->keep);
	/* LLVM, in PoCL, replaces the signal stack of the thread; sanitizers unmap theirs when it
	 * ends. */
	(void)sigaltstack(NULL, &before);
	t->res = t->fn(t->arg);
	(void)sigaltstack(&before, NULL);
	return NULL;
}

int caps_run(uint64_t keep, int (*fn)(void *arg), void *arg)
{
	struct task t = {.keep = keep, .fn = fn, .arg = arg};
	pthread_t thread;
	int err = pthread_create(&thread, NULL, run, &t);

	if (err)
		return -err;
	pthread_join(thread, NULL);
	return t.res;
}
