/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capabilities (capabilities(7)) of the calling thread. Sets are bit masks, 1 << CAP_NAME. */
#ifndef BASE_CAPS_H
#define BASE_CAPS_H

#include <linux/capability.h>
#include <stdint.h>

#define CAPS_BIT(cap) (1ull << (cap))
/* netfilter queues, the kernel module, and the tools that remove rules: iptables-legacy opens a raw socket. */
#define CAPS_NETFILTER (CAPS_BIT(CAP_NET_ADMIN) | CAPS_BIT(CAP_NET_RAW))
/* XDP programs, maps and AF_XDP sockets, also of links that come back. */
#define CAPS_XDP (CAPS_NETFILTER | CAPS_BIT(CAP_BPF))

/* The same for this kernel and these limits: CAP_SYS_ADMIN instead of CAP_BPF before Linux 5.8, and CAP_IPC_LOCK where locked memory
 * is limited. */
uint64_t caps_here(uint64_t want);

/* 0 or -errno. */
int caps_get(uint64_t *permitted, uint64_t *inheritable);
/* effective becomes permitted. 0 or -errno. */
int caps_set(uint64_t permitted, uint64_t inheritable);
/* This thread, and the threads that it creates from now on, keep no others in any set. The bounding set needs CAP_SETPCAP.
 * 0 or -errno. */
int caps_limit(uint64_t keep);

#endif
