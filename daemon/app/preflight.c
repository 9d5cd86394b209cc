/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See preflight.h. */
#include "app/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/secmem.h"
#include "control/source.h"

void preflight_process(uint64_t descriptors)
{
	struct rlimit files;
	rlim_t need = descriptors;

	secmem_no_dumps();
	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= need)
		return;
	if (files.rlim_max < need) {
		struct rlimit raised = {need, need};

		if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
			return;
		log_warn(
			"only %llu descriptors are allowed, all ports need %llu: calls beyond that are refused. Raise LimitNOFILE (systemd) or ulimit -Hn, or narrow port-min to port-max",
			(unsigned long long)files.rlim_max, (unsigned long long)need);
		need = files.rlim_max;
	}
	files.rlim_cur = need;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* Only an attempt shows how much can be locked: a privilege may override the limit. */
void preflight_locked(size_t need)
{
	struct rlimit lock;
	void *p;

	if (getrlimit(RLIMIT_MEMLOCK, &lock))
		return;
	lock.rlim_cur = lock.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &lock);
	p = mmap(NULL, need, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (p == MAP_FAILED)
		return;
	if (mlock2(p, need, MLOCK_ONFAULT))
		log_warn(
			"only %llu KiB of memory may be locked, keys need up to %zu: they could be written to swap. Raise LimitMEMLOCK (systemd) or ulimit -Hl, narrow port-min to port-max, or turn swap off",
			(unsigned long long)lock.rlim_max / 1024, need / 1024);
	munmap(p, need);
}

int preflight_interfaces(const struct relay_local *local, uint32_t n, char *err, size_t err_len)
{
	char text[ENDPOINT_STRLEN];

	for (uint32_t i = 0; i < n; i++) {
		struct sockaddr_storage sa;
		socklen_t len = endpoint_to_sockaddr(&local[i].addr, &sa);
		int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		int res = fd < 0 || bind(fd, (struct sockaddr *)&sa, len) ? -errno : 0;

		if (fd >= 0)
			close(fd);
		if (res) {
			snprintf(err, err_len,
				"--interface=%s: %s. It must be an address of this machine, as \"ip addr\" shows them",
				endpoint_fmt_addr(&local[i].addr, text), strerror(-res));
			return res;
		}
	}
	return 0;
}

void preflight_config(const struct options *o)
{
	if (o->user[0] && strcmp(o->config_file, "none") != 0 &&
		faccessat(AT_FDCWD, o->config_file, R_OK, AT_EACCESS) && errno == EACCES)
		log_warn(
			"--config-file=%s cannot be read by --user=%s, so every reload will fail: chmod 640 it, chown it to root and to the user's group",
			o->config_file, o->user);
}

/* A media address appears in every SDP, so strangers know it. */
static bool is_media(const struct options *o, const struct endpoint *listen)
{
	for (uint32_t i = 0; i < o->locals; i++)
		if (endpoint_is_unspecified(listen) || endpoint_addr_eq(listen, &o->local[i].addr))
			return true;
	return false;
}

static void warn_open(const struct options *o, const char *option, const struct endpoint *listen,
	const char *remedy)
{
	char text[ENDPOINT_STRLEN];

	if (listen->family == 0 || source_is_loopback(listen))
		return;
	if (remedy)
		log_warn(
			"--%s=%s: any host that reaches this address controls the daemon, and forged requests send large replies to third parties: use a loopback or management address, or %s",
			option, endpoint_fmt(listen, text), remedy);
	if (is_media(o, listen))
		log_warn(
			"--%s=%s is also a media address, which appears in every SDP: use another address, or block the port from outside",
			option, endpoint_fmt(listen, text));
}

void preflight_ng(const struct options *o)
{
	const char *remedy = o->ng_key_file[0] ? NULL : "set --ng-key-file";

	warn_open(o, "listen-ng", &o->listen_ng, remedy);
	warn_open(o, "listen-tcp-ng", &o->listen_tcp_ng, remedy);
}
