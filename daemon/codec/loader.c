/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A plug-in runs with the rights of the process that loads it. So the folder and the file must
 * belong to root or to us, and only the owner may write to them. */
#include "loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 512 };

static bool trusted(const struct stat *s)
{
	return (s->st_uid == 0 || s->st_uid == geteuid()) && !(s->st_mode & (S_IWGRP | S_IWOTH));
}

static bool is_plugin(const char *name)
{
	size_t len = strlen(name);

	return name[0] != '.' && len > 3 && strcmp(name + len - 3, ".so") == 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in order; the caller frees them and the array. Returns how many, or -errno. */
static int list(const char *folder, char ***out)
{
	char **name = calloc(CODEC_PLUGINS, sizeof(*name));
	DIR *d = opendir(folder);
	int n = 0, rc = 0;

	if (!name || !d)
		rc = name ? -errno : -ENOMEM;
	for (struct dirent *e; rc == 0 && (e = readdir(d)) && n < CODEC_PLUGINS;) {
		if (!is_plugin(e->d_name))
			continue;
		name[n] = strdup(e->d_name);
		n += name[n] != NULL;
	}
	if (d)
		closedir(d);
	if (rc) {
		free(name);
		return rc;
	}
	qsort(name, (size_t)n, sizeof(*name), by_name);
	*out = name;
	return n;
}

/* Loads a plug-in into this process, after its test in another one. */
static void load_here(struct codec_registry *r, struct codec_loaded *l, const char *path)
{
	struct xcipher_codec_plugin *p = NULL;
	void *handle = NULL;

	if (codec_check_open(path, &handle, &p, l->refused))
		return;
	l->tables = p;
	if (p->resampler && !r->resampler)
		r->resampler = p->resampler;
	for (uint32_t i = 0; i < p->codecs; i++) {
		struct codec_entry e = {.codec = p->codec[i], .number = i, .plugin = r->plugins};

		codec_about_fill(&e.about, e.codec);
		l->codecs += codec_registry_add(r, &e);
	}
	if (l->codecs == 0 && !p->resampler) {
		snprintf(l->refused, sizeof(l->refused), "all its codecs are there already");
		free(p);
		l->tables = NULL;
		dlclose(handle);
	}
}

static void load_isolated(struct codec_registry *r, struct codec_loaded *l, struct codec_home *h)
{
	for (uint32_t i = 0; i < h->hello.codecs; i++) {
		struct codec_entry e = {
			.about = h->hello.about[i], .home = h, .number = i, .plugin = r->plugins};

		l->codecs += codec_registry_add(r, &e);
	}
	if (l->codecs)
		l->home = h;
	else
		snprintf(l->refused, sizeof(l->refused), "%s",
			h->hello.codecs
				? "all its codecs are there already"
				: "a resampler cannot be isolated: set --codec-isolation=none");
}

/* Starts the test of a plug-in in a process of its own. NULL: the plug-in is refused. */
static struct codec_home *begin(
	struct codec_loaded *l, const struct codec_loader_cfg *cfg, const char *path)
{
	struct codec_home_cfg home = cfg->home;
	struct codec_home *h = NULL;
	struct stat s;

	if (lstat(path, &s)) {
		snprintf(l->refused, sizeof(l->refused), "%s", strerror(errno));
		return NULL;
	}
	if (!S_ISREG(s.st_mode) || !trusted(&s)) {
		snprintf(l->refused, sizeof(l->refused), "%s",
			S_ISREG(s.st_mode)
				? "it must belong to root or to us, and only the owner may write to it"
				: "it is not a regular file");
		return NULL;
	}
	home.plugin = path;
	if (codec_home_begin(&h, &home, l->refused) == 0)
		return h;
	if (!l->refused[0])
		snprintf(l->refused, sizeof(l->refused), "its process cannot be started");
	return NULL;
}

/* Waits for the result of the test, and adds the codecs. */
static void finish(struct codec_registry *r, const struct codec_loader_cfg *cfg, const char *path,
	struct codec_home *h)
{
	bool isolate = cfg->isolation == CODEC_ISOLATE_ALL ||
		(cfg->isolation == CODEC_ISOLATE_FOREIGN && !cfg->ours);
	struct codec_loaded *l = &r->loaded[r->plugins];

	if (codec_home_await(h, l->refused)) {
		if (!l->refused[0])
			snprintf(l->refused, sizeof(l->refused), "its process fails");
		return;
	}
	memcpy(l->version, h->hello.version, sizeof(l->version));
	memcpy(l->license, h->hello.license, sizeof(l->license));
	if (isolate)
		load_isolated(r, l, h);
	else
		load_here(r, l, path);
	if (!l->home)
		codec_home_destroy(h);
}

static bool path_of(char path[PATH_BYTES], const struct codec_loader_cfg *cfg, const char *name)
{
	return snprintf(path, PATH_BYTES, "%s/%s", cfg->folder, name) < PATH_BYTES;
}

/* Tests all plug-ins in parallel, because the calls of a daemon that restarts wait for it. */
static int load_all(
	struct codec_registry *r, const struct codec_loader_cfg *cfg, char **name, int names)
{
	struct codec_home *home[CODEC_PLUGINS] = {NULL};
	uint32_t room = CODEC_PLUGINS - r->plugins;
	char path[PATH_BYTES];
	int n = names < (int)room ? names : (int)room, loaded = 0;

	for (int i = 0; i < n; i++) {
		struct codec_loaded *l = &r->loaded[r->plugins + (uint32_t)i];

		snprintf(l->file, sizeof(l->file), "%s", name[i]);
		if (path_of(path, cfg, name[i]))
			home[i] = begin(l, cfg, path);
		else
			snprintf(l->refused, sizeof(l->refused), "its path is too long");
	}
	for (int i = 0; i < n; i++, r->plugins++) {
		if (home[i] && path_of(path, cfg, name[i]))
			finish(r, cfg, path, home[i]);
		loaded += !r->loaded[r->plugins].refused[0];
	}
	return loaded;
}

int codec_loader_run(struct codec_registry *r, const struct codec_loader_cfg *cfg)
{
	char **name = NULL;
	int n = 0, loaded = 0;
	struct stat s;

	if (stat(cfg->folder, &s))
		return -errno;
	if (!S_ISDIR(s.st_mode) || !trusted(&s))
		return -EPERM;
	n = list(cfg->folder, &name);
	if (n < 0)
		return n;
	loaded = load_all(r, cfg, name, n);
	for (int i = 0; i < n; i++)
		free(name[i]);
	free(name);
	return loaded;
}
