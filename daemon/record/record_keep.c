/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Retention of recordings (record/record_keep.h). */
#include "record/record_keep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_USE_S 60

struct found {
	char *name; /* of the pcap file */
	uint64_t when_s, bytes;
};

static int by_age(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->when_s < y->when_s ? -1 : x->when_s > y->when_s;
}

static bool is_pcap(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && strcmp(name + n - 5, ".pcap") == 0;
}

static struct found *list(DIR *d, size_t *n)
{
	struct found *all = NULL;
	const struct dirent *e;

	*n = 0;
	while ((e = readdir(d)) != NULL) {
		struct found *more;
		struct stat st;

		if (!is_pcap(e->d_name) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
			!S_ISREG(st.st_mode))
			continue;
		more = realloc(all, (*n + 1) * sizeof(*all));
		if (!more)
			break;
		all = more;
		all[*n] = (struct found){.name = strdup(e->d_name),
			.when_s = (uint64_t)st.st_mtim.tv_sec,
			.bytes = (uint64_t)st.st_size};
		if (!all[*n].name)
			break;
		(*n)++;
	}
	return all;
}

static bool gone(int dir, const struct found *f)
{
	char text[256];
	size_t base = strlen(f->name) - 5;

	if (unlinkat(dir, f->name, 0))
		return false;
	if (base + 5 <= sizeof(text)) {
		snprintf(text, sizeof(text), "%.*s.txt", (int)base, f->name);
		unlinkat(dir, text, 0);
	}
	return true;
}

uint32_t record_keep(const char *dir, uint64_t max_age_s, uint64_t max_bytes, uint64_t now_s)
{
	DIR *d = opendir(dir);
	uint64_t sum = 0;
	uint32_t removed = 0;
	struct found *all;
	size_t n;

	if (!d)
		return 0;
	all = list(d, &n);
	if (n)
		qsort(all, n, sizeof(*all), by_age);
	for (size_t i = 0; i < n; i++)
		sum += all[i].bytes;
	for (size_t i = 0; i < n; i++) {
		uint64_t age = now_s > all[i].when_s ? now_s - all[i].when_s : 0;
		bool old = max_age_s && age > max_age_s, much = max_bytes && sum > max_bytes;

		if (age >= IN_USE_S && (old || much) && gone(dirfd(d), &all[i])) {
			sum -= all[i].bytes;
			removed++;
		}
		free(all[i].name);
	}
	free(all);
	closedir(d);
	return removed;
}
