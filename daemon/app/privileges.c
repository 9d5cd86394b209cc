/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See privileges.h. Capabilities belong to threads, and only a thread itself can drop its own. So
 * each of our threads drops them when it begins, and libraries that create threads (OpenCL) are
 * called from a thread that has none. */
#include "app/privileges.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/log.h"
#include "steer/steer.h"

#define CAPS     64
#define TRIES    500
#define PAUSE_US 2000

uint64_t privileges_of(const struct steer_ops *ops)
{
	static const struct {
		const struct steer_ops *ops;
		uint64_t keep;
	} T[] = {{&steer_udp, 0}, {&steer_nfqueue, CAPS_NETFILTER}, {&steer_kernel, CAPS_NETFILTER},
		{&steer_xdp, CAPS_XDP}};
	uint64_t keep = 0;

	for (size_t i = 0; i < sizeof(T) / sizeof(T[0]); i++)
		if (T[i].ops == ops)
			keep = T[i].keep;
	return caps_here(keep);
}

uint64_t privileges_to_start(const struct steer_ops *ops)
{
	/* nfqueue loads the program that drops packets of streams under attack. With CAP_PERFMON
	 * the kernel adds no barriers against speculation to it, and it takes a third of the time.
	 * Threads can remove both from their bounding sets only with CAP_SETPCAP. */
	uint64_t more =
		caps_here(CAPS_BIT(CAP_BPF)) | CAPS_BIT(CAP_PERFMON) | CAPS_BIT(CAP_SETPCAP);

	return privileges_of(ops) | (ops == &steer_udp ? 0 : more);
}

/* --- Another user ----------------------------------------------------------------------------- */

static bool number(const char *text, unsigned long *out)
{
	char *end;

	*out = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && *out < UINT32_MAX;
}

int privileges_group(const char *option, const char *group, gid_t *out, char *err, size_t err_len)
{
	const struct group *gr = getgrnam(group);
	unsigned long n = 0;

	if (!gr && !number(group, &n)) {
		snprintf(err, err_len, "--%s=%s: unknown group", option, group);
		return -ENOENT;
	}
	*out = gr ? gr->gr_gid : (gid_t)n;
	return 0;
}

static int find(const char *user, const char *group, uid_t *uid, gid_t *gid, char *err, size_t len)
{
	const struct passwd *pw = getpwnam(user);
	unsigned long n;

	if (!pw && number(user, &n))
		pw = getpwuid((uid_t)n);
	if (pw) {
		*uid = pw->pw_uid;
		*gid = pw->pw_gid;
		/* OpenCL keeps its caches there. */
		setenv("HOME", pw->pw_dir, 1);
	} else if (number(user, &n)) {
		*uid = *gid = (uid_t)n;
	} else {
		snprintf(err, len, "--user=%s: unknown user", user);
		return -ENOENT;
	}
	return group[0] ? privileges_group("group", group, gid, err, len) : 0;
}

/* Programs that we start (nft) inherit the ambient set. */
static void hand_on(uint64_t keep)
{
	uint64_t permitted, inheritable;

	if (caps_get(&permitted, &inheritable) ||
		caps_set(permitted, inheritable | (permitted & keep)))
		return;
	for (int cap = 0; cap < CAPS; cap++)
		if (keep & permitted & CAPS_BIT(cap))
			(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
}

/* Drops root's right to open all files. A file that the user cannot open stops the start, not a
 * later reload. */
static int drop_files(void)
{
	const uint64_t files = CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_DAC_READ_SEARCH);
	uint64_t permitted, inheritable;
	int err = caps_get(&permitted, &inheritable);

	return err ? err : caps_set(permitted & ~files, inheritable & ~files);
}

/* Keeps the other capabilities: ports are bound later. */
static int become(uint64_t keep, const char *user, const char *group, char *err, size_t len)
{
	uid_t uid = 0;
	gid_t gid = 0;
	int res = find(user, group, &uid, &gid, err, len);

	if (res)
		return res;
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) || setgroups(0, NULL) ||
		setresgid(gid, gid, gid) || setresuid(uid, uid, uid)) {
		res = -errno;
		snprintf(err, len, "--user=%s: %s (only root can change the user)", user,
			strerror(-res));
		return res;
	}
	if (uid == 0)
		return 0;
	hand_on(keep);
	res = drop_files();
	if (res)
		snprintf(err, len, "--user=%s: %s", user, strerror(-res));
	return res;
}

int privileges_prepare(
	uint64_t keep, const char *user, const char *group, char *err, size_t err_len)
{
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		log_warn("cannot set no_new_privs: %s", strerror(errno));
	return user[0] ? become(keep, user, group, err, err_len) : 0;
}

/* --- The other threads ------------------------------------------------------------------------ */

static bool permitted_of(const char *thread, uint64_t *caps)
{
	char path[64], line[128];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", thread);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		if (strncmp(line, "CapPrm:", 7) == 0) {
			*caps = strtoull(line + 7, NULL, 16);
			found = true;
		}
	if (f)
		fclose(f);
	return found;
}

static uint32_t count_threads(uint64_t keep)
{
	DIR *tasks = opendir("/proc/self/task");
	uint32_t more = 0;
	uint64_t caps;

	for (const struct dirent *e; tasks && (e = readdir(tasks));)
		if (e->d_name[0] != '.' && permitted_of(e->d_name, &caps) && caps & ~keep)
			more++;
	if (tasks)
		closedir(tasks);
	return more;
}

/* Our threads drop theirs as soon as they run. */
static void check_threads(uint64_t keep)
{
	uint32_t more = count_threads(keep);

	for (int i = 0; more && i < TRIES; i++) {
		usleep(PAUSE_US);
		more = count_threads(keep);
	}
	if (more)
		log_warn("%u library threads keep more capabilities than the steering needs", more);
}

int privileges_drop(uint64_t keep)
{
	uint64_t permitted, inheritable;
	int err = caps_limit(keep);

	if (err)
		return err;
	check_threads(keep);
	if (caps_get(&permitted, &inheritable) == 0 && permitted & CAPS_BIT(CAP_IPC_LOCK))
		log_info(
			"CAP_IPC_LOCK is kept, because the limit of locked memory cannot be lifted. To drop it, set LimitMEMLOCK=infinity (systemd) or ulimit -Hl unlimited");
	return 0;
}
