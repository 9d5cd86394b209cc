/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capabilities (capabilities(7)) of the calling thread. Sets are bit masks, 1 << CAP_NAME. */
#ifndef BASE_CAPS_H
#define BASE_CAPS_H

#include <linux/capability.h>
#include <stdint.h>

#define CAPS_BIT(cap) (1ull << (cap))
/* netfilter queues, the kernel module, and the tools that remove rules: iptables-legacy opens a raw
 * socket. */
#define CAPS_NETFILTER (CAPS_BIT(CAP_NET_ADMIN) | CAPS_BIT(CAP_NET_RAW))
/* netfilter queues, the kernel module, and programs that remove rules: iptables-legacy opens a raw
 * socket. */
#define CAPS_XDP (CAPS_NETFILTER | CAPS_BIT(CAP_BPF))

/* Adapts a set to this kernel and these limits: CAP_SYS_ADMIN replaces CAP_BPF before Linux 5.8,
 * and CAP_IPC_LOCK is added if locked memory is limited. */
uint64_t caps_here(uint64_t want);

/* 0 or -errno. */
int caps_get(uint64_t *permitted, uint64_t *inheritable);
/* Sets the effective set to the permitted one, too. 0 or -errno. */
int caps_set(uint64_t permitted, uint64_t inheritable);
/* Removes all capabilities but keep from every set of this thread; threads that it creates later
 * inherit this. Needs CAP_SETPCAP to reduce the bounding set. 0 or -errno. */
int caps_limit(uint64_t keep);
/* Runs fn in a thread that has only the capabilities keep, and waits for it. Threads that libraries
 * create in fn inherit them. Returns fn's result or -errno. */
int caps_run(uint64_t keep, int (*fn)(void *arg), void *arg);

#endif
