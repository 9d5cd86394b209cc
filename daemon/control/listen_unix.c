/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See listen_unix.h. The socket's mode denies access to other users. The peer's credentials are
 * checked, too: an administrator may have opened the socket to all, or another user may be able to
 * replace it. */
#include "control/listen_unix.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/listen.h"

#define BACKLOG    16
#define GROUPS_MAX 256

/* Removes the socket of a program that has ended. */
static int remove_dead(const struct sockaddr_un *at)
{
	struct stat st;
	int fd, err;

	if (lstat(at->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = connect(fd, (const struct sockaddr *)at, sizeof(*at)) ? errno : 0;
	close(fd);
	if (err != ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(at->sun_path) ? -errno : 0;
}

/* The umask denies access until the group is set. */
static int bind_private(int fd, const struct sockaddr_un *at, gid_t group)
{
	mode_t mask = umask(0177);
	int err = bind(fd, (const struct sockaddr *)at, sizeof(*at)) ? -errno : 0;

	umask(mask);
	if (err || group == LISTEN_NO_GROUP)
		return err;
	if (chown(at->sun_path, (uid_t)-1, group) || chmod(at->sun_path, 0660))
		err = -errno;
	if (err)
		unlink(at->sun_path);
	return err;
}

int listen_unix_open(const char *path, gid_t group)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	strcpy(at.sun_path, path);
	err = remove_dead(&at);
	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = bind_private(fd, &at, group);
	if (!err && listen(fd, BACKLOG)) {
		err = -errno;
		unlink(path);
	}
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

bool listen_unix_admits(int fd, gid_t group)
{
	gid_t groups[GROUPS_MAX];
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	if (peer.uid == 0 || peer.uid == geteuid())
		return true;
	if (group == LISTEN_NO_GROUP)
		return false;
	if (peer.gid == group)
		return true;
	len = sizeof(groups);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len))
		return false;
	for (size_t i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == group)
			return true;
	return false;
}
