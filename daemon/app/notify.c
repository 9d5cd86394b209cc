/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sd_notify(3) without its library, and whether workers are alive (app/notify.h). */
#include "app/notify.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool connect_to(int fd, const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	size_t len = strlen(path);

	if ((path[0] != '/' && path[0] != '@') || len >= sizeof(sa.sun_path))
		return false;
	memcpy(sa.sun_path, path, len);
	if (path[0] == '@')
		sa.sun_path[0] = 0;
	return connect(fd, (struct sockaddr *)&sa,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0;
}

void notify_open(struct notify *n)
{
	const char *path = getenv("NOTIFY_SOCKET"), *pid = getenv("WATCHDOG_PID");

	n->watchdog = getenv("WATCHDOG_USEC") && (!pid || atol(pid) == getpid());
	n->fd = path ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
	if (n->fd >= 0 && !connect_to(n->fd, path))
		notify_close(n);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void notify_close(struct notify *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

void notify_send(const struct notify *n, const char *state)
{
	if (n->fd >= 0)
		(void)!send(n->fd, state, strlen(state), MSG_NOSIGNAL);
}

bool alive_look(struct alive *a, struct worker *const *worker, uint32_t workers, uint32_t *which)
{
	bool all = true;

	for (uint32_t i = 0; i < workers && i < ALIVE_WORKERS; i++) {
		uint64_t rounds = atomic_load_explicit(&worker[i]->rounds, memory_order_relaxed);

		if (rounds != a->rounds[i]) {
			a->rounds[i] = rounds;
			a->silent[i] = 0;
			continue;
		}
		worker_wake(worker[i]);
		if (++a->silent[i] > ALIVE_SECONDS && all) {
			all = false;
			*which = i;
		}
	}
	return all;
}
