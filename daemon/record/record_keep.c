/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Retention of recordings (record/record_keep.h). */
#include "record/record_keep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/record_name.h"

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

/* The recording's other file with this ending. False: its name is too long to exist. */
static bool other(char *out, size_t cap, const char *pcap, uint32_t end)
{
	char ending[RECORD_NAME_MAX + 1];

	record_name_end(ending, end);
	return (size_t)snprintf(out, cap, "%.*s%s", (int)strlen(pcap) - 5, pcap, ending) < cap;
}

/* Bytes of all files of a recording but its text. */
static uint64_t bytes_of(int dir, const char *pcap, const struct stat *st)
{
	uint64_t sum = (uint64_t)st->st_size;

	for (uint32_t end = 2; end < RECORD_NAME_ENDS; end++) {
		struct stat wav;
		char name[256];

		if (other(name, sizeof(name), pcap, end) &&
			fstatat(dir, name, &wav, AT_SYMLINK_NOFOLLOW) == 0)
			sum += (uint64_t)wav.st_size;
	}
	return sum;
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
			.bytes = bytes_of(dirfd(d), e->d_name, &st)};
		if (!all[*n].name)
			break;
		(*n)++;
	}
	return all;
}

static bool gone(int dir, const struct found *f)
{
	char name[256];

	if (unlinkat(dir, f->name, 0))
		return false;
	for (uint32_t end = 1; end < RECORD_NAME_ENDS; end++)
		if (other(name, sizeof(name), f->name, end))
			unlinkat(dir, name, 0);
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
