/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of pktx, which sends and checks packets in tests. */
#ifndef T_KERNEL_PKTX_H
#define T_KERNEL_PKTX_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/bytes.h"

/* "NS,ADDR,PORT" or "ADDR,PORT"; NS "" is the current one. */
struct pktx_where {
	char ns[32], addr[INET6_ADDRSTRLEN];
	uint16_t port;
};

/* These end the program on an error. */
void pktx_where(struct pktx_where *out, const char *text);
bool pktx_same(const struct pktx_where *a, const struct pktx_where *b);
socklen_t pktx_address(const struct pktx_where *w, struct sockaddr_storage *out);
/* Enters that namespace for good. */
void pktx_enter(const char *ns);
/* A UDP socket bound in its namespace, which reports TTL and TOS of received packets. */
int pktx_socket(const struct pktx_where *w);
/* Sets TTL and TOS of sent packets; 0 = the default. */
void pktx_mark(int fd, uint32_t ttl, uint32_t tos);
/* On a virtual link a packet waits at the processor that sent it. A sender that moves to another
 * processor overtakes its own packets, so it stays where it is from now on. */
void pktx_stay(void);
void pktx_name(const struct sockaddr_storage *sa, char *out, size_t len);

struct pktx_what {
	const char *kind;
	uint32_t count;
	uint32_t ms; /* not 0: for that time, whatever the count */
	uint32_t seed;
};

/* dev: "NS,IFACE,MAC". Sends these packets. Returns an exit status. */
int pktx_raw(const char *dev, const struct pktx_where *from, const struct pktx_where *to,
	const struct pktx_what *what);

/* The command "bulk": argv[0] is its name. Returns an exit status. */
int pktx_bulk(int argc, char **argv);

#endif
