/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --codec-dir: the codecs that a start loads, and the reply to the ng command "codecs". */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/codecs.h"
#include "base/bytes.h"
#include "codec_paths.h"
#include "codec_peers.h"

struct rig {
	char folder[CODEC_PATH], other[CODEC_PATH], program[CODEC_PATH], dirs[2 * CODEC_PATH];
	struct options o;
	struct codec_registry *r;
	char err[512];
};

static void rig_open(struct rig *g)
{
	*g = (struct rig){0};
	codec_folder(g->folder);
	codec_folder(g->other);
	g->o.codec_worker = codec_path(g->program, "xcipher-codec-worker");
	snprintf(g->dirs, sizeof(g->dirs), "%s,%s", g->folder, g->other);
	g->o.codec_dir = g->dirs;
}

static void rig_close(struct rig *g)
{
	codec_registry_destroy(g->r);
	codec_folder_remove(g->folder);
	codec_folder_remove(g->other);
}

static int load(struct rig *g)
{
	return app_codecs_load(&g->r, &g->o, g->err, sizeof(g->err));
}

static const struct ngval *row(
	const struct ngval *dict, const char *list, const char *key, const char *value)
{
	const struct ngval *l = ngval_get(dict, str_from(list));

	for (const struct ngval *c = l ? l->first : NULL; c; c = c->next)
		if (str_eq(ngval_get(c, str_from(key))->str, str_from(value)))
			return c;
	return NULL;
}

static void two_folders_are_loaded(void **state)
{
	const struct ngval *half, *bad;
	struct ngval *dict;
	char path[CODEC_PATH];
	struct rig g;
	struct pool *p;

	(void)state;
	rig_open(&g);
	codec_copy(codec_path(path, "t/codecs/symbol.so"), g.folder, "symbol.so");
	codec_copy(codec_path(path, "codecs/template.so"), g.other, "x.so");
	assert_int_equal(load(&g), 0);
	assert_int_equal(g.r->plugins, 2);
	assert_int_equal(pool_create(&p, 1 << 20), 0);
	dict = ngval_dict(p);
	app_codecs_show(g.r, p, dict);
	app_codecs_show_threads(NULL, p, dict);
	assert_int_equal(
		ngval_int(ngval_get(ngval_get(dict, STR("threads")), STR("packets")), -1), 0);
	assert_true(str_eq(ngval_get(dict, STR("resampler"))->str, STR("built in")));
	half = row(dict, "codecs", "name", "x-half");
	assert_non_null(half);
	assert_int_equal(ngval_int(ngval_get(half, STR("isolated")), -1), 1);
	assert_true(str_eq(ngval_get(half, STR("plug-in"))->str, STR("x.so")));
	assert_true(str_eq(ngval_get(row(dict, "codecs", "name", "PCMU"), STR("plug-in"))->str,
		STR("built in")));
	bad = row(dict, "plug-ins", "file", "symbol.so");
	assert_non_null(ngval_get(bad, STR("refused")));
	assert_null(ngval_get(row(dict, "plug-ins", "file", "x.so"), STR("refused")));
	pool_destroy(p);
	rig_close(&g);
}

static void none_are_only_the_built_in_ones(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g);
	g.o.codec_dir = "none";
	assert_int_equal(load(&g), 0);
	assert_int_equal(g.r->plugins, 0);
	assert_non_null(codec_registry_find(g.r, "G722", 8000, 1));
	rig_close(&g);
}

static void a_folder_that_is_named_must_be_there(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g);
	g.o.codec_dir = "/nowhere/codecs";
	assert_int_equal(load(&g), -ENOENT);
	assert_string_equal(g.err,
		"--codec-dir=/nowhere/codecs: No such file or directory. Install codec plug-ins there, or set --codec-dir=none");
	codec_registry_destroy(g.r);
	g.o.codec_dir = g.folder;
	chmod(g.folder, 0777);
	assert_int_equal(load(&g), -EPERM);
	assert_non_null(strstr(g.err, "only the owner may write to it"));
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_folders_are_loaded),
		cmocka_unit_test(none_are_only_the_built_in_ones),
		cmocka_unit_test(a_folder_that_is_named_must_be_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
