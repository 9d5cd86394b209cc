/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Classic BPF: filters in the kernel without privileges. Five instructions per datagram, and two
 * more for each further media address. */
#include "steer/own_source.h"

#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include "base/bytes.h"

#define LOOPBACK 1u /* the loopback interface's index in every namespace */
#define SOURCE   8u /* offset of the source in the header (RFC 8200 3) */
#define WORDS    4u
#define PASS     UINT32_MAX
#define MOST     (3 + STEER_MAX_LOCAL * (2 * WORDS + 1))

int own_source_refuse(int fd, const struct steer_config *cfg)
{
	struct sock_filter f[MOST + 1];
	struct sock_fprog program = {.filter = f};
	unsigned short n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LOOPBACK, 0, 1);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, PASS);
	for (uint32_t i = 0; i < cfg->locals; i++) {
		if (cfg->local[i].family != AF_INET6)
			continue;
		for (uint32_t k = 0; k < WORDS; k++) {
			/* Jump to the next address, over the rest of this one. */
			uint8_t other = (uint8_t)(2 * (WORDS - 1 - k) + 1);

			f[n++] = (struct sock_filter)BPF_STMT(
				BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + SOURCE + 4 * k);
			f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
				be32(cfg->local[i].addr + 4 * k), 0, other);
		}
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, PASS);
	program.len = n;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}
