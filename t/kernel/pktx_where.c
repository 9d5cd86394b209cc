/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses, namespaces and sockets of pktx. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pktx.h"

static void die(const char *what)
{
	fprintf(stderr, "pktx: ");
	perror(what);
	exit(2);
}

void pktx_where(struct pktx_where *out, const char *text)
{
	char copy[128], *part[3], *save = NULL;
	int n = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *p = strtok_r(copy, ",", &save); p && n < 3; p = strtok_r(NULL, ",", &save))
		part[n++] = p;
	if (n < 2) {
		fprintf(stderr, "pktx: \"%s\" is not [NS,]ADDR,PORT\n", text);
		exit(2);
	}
	memset(out, 0, sizeof(*out));
	if (n == 3)
		snprintf(out->ns, sizeof(out->ns), "%s", part[0]);
	snprintf(out->addr, sizeof(out->addr), "%s", part[n - 2]);
	out->port = (uint16_t)strtoul(part[n - 1], NULL, 10);
}

bool pktx_same(const struct pktx_where *a, const struct pktx_where *b)
{
	return strcmp(a->ns, b->ns) == 0 && strcmp(a->addr, b->addr) == 0 && a->port == b->port;
}

socklen_t pktx_address(const struct pktx_where *w, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, w->addr, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(w->port);
		return sizeof(*v4);
	}
	if (inet_pton(AF_INET6, w->addr, &v6->sin6_addr) != 1) {
		fprintf(stderr, "pktx: \"%s\" is no address\n", w->addr);
		exit(2);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(w->port);
	return sizeof(*v6);
}

void pktx_enter(const char *ns)
{
	char path[64];
	int fd;

	if (!ns[0])
		return;
	snprintf(path, sizeof(path), "/run/netns/%s", ns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(path);
	close(fd);
}

int pktx_socket(const struct pktx_where *w)
{
	struct sockaddr_storage sa;
	socklen_t len = pktx_address(w, &sa);
	int on = 1, room = 4 << 20, fd;

	pktx_enter(w->ns);
	fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, len))
		die(w->addr);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	if (sa.ss_family == AF_INET) {
		setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
	} else {
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof(on));
	}
	return fd;
}

void pktx_mark(int fd, uint32_t ttl, uint32_t tos)
{
	int t = (int)ttl, s = (int)tos, family = 0;
	socklen_t len = sizeof(family);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	if (ttl && family == AF_INET)
		setsockopt(fd, IPPROTO_IP, IP_TTL, &t, sizeof(t));
	if (ttl && family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &t, sizeof(t));
	if (tos && family == AF_INET)
		setsockopt(fd, IPPROTO_IP, IP_TOS, &s, sizeof(s));
	if (tos && family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &s, sizeof(s));
}

void pktx_stay(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
}

void pktx_name(const struct sockaddr_storage *sa, char *out, size_t len)
{
	char text[INET6_ADDRSTRLEN] = "?";
	uint16_t port;

	if (sa->ss_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;

		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
		port = ntohs(v6->sin6_port);
	} else {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;

		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
		port = ntohs(v4->sin_port);
	}
	snprintf(out, len, "%s,%u", text, port);
}
