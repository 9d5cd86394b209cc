/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "codec_paths.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *codec_path(char path[CODEC_PATH], const char *name)
{
	char self[CODEC_PATH - 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	for (int up = 0; up < 2; up++)
		if (strrchr(self, '/'))
			*strrchr(self, '/') = 0;
	snprintf(path, CODEC_PATH, "%s/%.60s", self, name);
	return path;
}

const char *codec_folder(char path[CODEC_PATH])
{
	snprintf(path, CODEC_PATH, "/tmp/xcipher-codec-XXXXXX");
	if (!mkdtemp(path) || chmod(path, 0755))
		abort();
	return path;
}

void codec_folder_remove(const char *path)
{
	char file[CODEC_PATH + 300];
	DIR *d = opendir(path);

	for (struct dirent *e; d && (e = readdir(d));) {
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		unlink(file);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

void codec_copy(const char *from, const char *folder, const char *name)
{
	char to[CODEC_PATH + 64], bytes[4096];
	FILE *in = fopen(from, "rb"), *out = NULL;
	size_t n = 0;

	snprintf(to, sizeof(to), "%s/%.60s", folder, name);
	out = fopen(to, "wb");
	if (!in || !out)
		abort();
	while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
		if (fwrite(bytes, 1, n, out) != n)
			abort();
	fclose(in);
	if (fclose(out) || chmod(to, 0755))
		abort();
}
