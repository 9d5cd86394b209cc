/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The codecs of this process: built in, and from the plug-ins of --codec-dir. Loaded once at start;
 * "xcipherctl codecs" shows them. */
#include "app/codecs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "codec/loader.h"

static void tell(const struct codec_registry *r, const char *folder, uint32_t from)
{
	for (uint32_t i = from; i < r->plugins; i++) {
		const struct codec_loaded *l = &r->loaded[i];

		if (l->refused[0])
			log_warn("codec plug-in %s/%s is refused: %s", folder, l->file, l->refused);
		else
			log_info("codec plug-in %s/%s, version %s: %u codec%s%s", folder, l->file,
				l->version, l->codecs, l->codecs == 1 ? "" : "s",
				l->home ? ", isolated" : "");
	}
}

/* Homes keep a pointer to the name of their program, and so does the registry. */
static int load(struct codec_registry *r, const struct options *o, const char *folder, char *err,
	size_t err_len)
{
	struct codec_loader_cfg cfg = {.folder = folder,
		.ours = strcmp(folder, CODEC_FOLDER) == 0,
		.isolation = o->codec_isolation};
	uint32_t from = r->plugins;
	int rc;

	codec_home_defaults(&cfg.home);
	cfg.home.program = o->codec_worker;
	rc = codec_loader_run(r, &cfg);
	tell(r, folder, from);
	if (rc >= 0 || (cfg.ours && rc == -ENOENT))
		return 0;
	snprintf(err, err_len, "--codec-dir=%s: %s", folder,
		rc == -EPERM
			? "the folder must belong to root or this user, and only the owner may write to it"
			: strerror(-rc));
	if (rc == -ENOENT)
		snprintf(err, err_len,
			"--codec-dir=%s: %s. Install codec plug-ins there, or set --codec-dir=none",
			folder, strerror(-rc));
	return rc;
}

int app_codecs_load(struct codec_registry **out, const struct options *o, char *err, size_t err_len)
{
	struct str rest = str_from(o->codec_dir);
	int rc = codec_registry_create(out);

	if (rc)
		snprintf(err, err_len, "codecs: %s", strerror(-rc));
	while (rest.len && rc == 0) {
		struct str one = str_trim(str_cut(&rest, ','));
		char folder[256];

		if (!one.len || str_eq(one, STR("none")))
			continue;
		if (one.len >= sizeof(folder)) {
			snprintf(err, err_len, "--codec-dir: a name has more than %zu letters",
				sizeof(folder) - 1);
			rc = -ENAMETOOLONG;
			break;
		}
		snprintf(folder, sizeof(folder), STR_FMT, STR_ARG(one));
		rc = load(*out, o, folder, err, err_len);
	}
	return rc;
}

/* --- xcipherctl codecs ------------------------------------------------------------------------ */

static void add_codec(struct pool *p, struct ngval *list, const struct codec_registry *r,
	const struct codec_entry *e)
{
	struct ngval *d = ngval_add_dict(p, list, STR_NONE);
	const struct codec_about *a = &e->about;

	ngval_add_str(p, d, STR("name"), str_from(a->name));
	ngval_add_int(p, d, STR("clock"), a->clock);
	ngval_add_int(p, d, STR("rate"), a->rate);
	ngval_add_int(p, d, STR("channels"), a->channels);
	if (a->static_pt >= 0)
		ngval_add_int(p, d, STR("payload type"), a->static_pt);
	ngval_add_int(p, d, STR("ptime"), a->ptime);
	ngval_add_int(p, d, STR("encodes"), (a->can & CODEC_ENCODES) != 0);
	ngval_add_str(p, d, STR("plug-in"),
		e->plugin == UINT32_MAX ? STR("built in") : str_from(r->loaded[e->plugin].file));
	ngval_add_int(p, d, STR("isolated"), e->home != NULL);
}

static void add_plugin(struct pool *p, struct ngval *list, const struct codec_loaded *l)
{
	struct ngval *d = ngval_add_dict(p, list, STR_NONE);

	ngval_add_str(p, d, STR("file"), str_from(l->file));
	if (l->refused[0]) {
		ngval_add_str(p, d, STR("refused"), str_from(l->refused));
		return;
	}
	ngval_add_str(p, d, STR("version"), str_from(l->version));
	ngval_add_str(p, d, STR("license"), str_from(l->license));
	ngval_add_int(p, d, STR("codecs"), l->codecs);
	ngval_add_int(p, d, STR("isolated"), l->home != NULL);
	if (!l->home)
		return;
#define X(name, text) ngval_add_int(p, d, STR(#name), (int64_t)l->home->faults.name);
	CODEC_FAULTS(X)
#undef X
}

void app_codecs_show(const struct codec_registry *r, struct pool *p, struct ngval *dict)
{
	struct ngval *codecs = ngval_add_list(p, dict, STR("codecs"));
	struct ngval *plugins = ngval_add_list(p, dict, STR("plug-ins"));

	for (uint32_t i = 0; i < r->entries; i++)
		add_codec(p, codecs, r, &r->entry[i]);
	for (uint32_t i = 0; i < r->plugins; i++)
		add_plugin(p, plugins, &r->loaded[i]);
	ngval_add_str(p, dict, STR("resampler"), r->resampler ? STR("speexdsp") : STR("built in"));
}

/* By pair of codecs, of all sessions so far. */
static void add_pairs(const struct bridge_audio *b, struct pool *p, struct ngval *dict)
{
	struct ngval *list = ngval_add_list(p, dict, STR("pairs"));
	struct audio_pairs pairs;

	bridge_audio_pairs(b, &pairs);
	for (uint32_t i = 0; i < pairs.n; i++) {
		const struct audio_stats *n = &pairs.at[i].sum;
		struct ngval *d = ngval_add_dict(p, list, STR_NONE);

		ngval_add_str(p, d, STR("codecs"), pool_strdup(p, str_from(pairs.at[i].name)));
		ngval_add_int(p, d, STR("decoded"), (int64_t)n->decoded);
		ngval_add_int(p, d, STR("passed"), (int64_t)n->passed);
		ngval_add_int(p, d, STR("lost"), (int64_t)n->lost);
		ngval_add_int(p, d, STR("concealed"), (int64_t)n->concealed);
		ngval_add_int(p, d, STR("late"), (int64_t)n->late);
		ngval_add_int(p, d, STR("cpu us"), (int64_t)(n->cpu_ns / 1000));
	}
}

void app_codecs_show_threads(const struct bridge_audio *b, struct pool *p, struct ngval *dict)
{
	struct bridge_audio_usage u;
	struct ngval *d;

	bridge_audio_usage(b, &u);
	d = ngval_add_dict(p, dict, STR("threads"));
	ngval_add_int(p, d, STR("sessions"), u.sessions);
	ngval_add_int(p, d, STR("packets"), (int64_t)u.packets);
	ngval_add_int(p, d, STR("cpu ms"), (int64_t)(u.cpu_ns / 1000000));
	ngval_add_int(p, d, STR("dropped"), (int64_t)(u.strays + u.stale + u.back_full));
	ngval_add_int(p, d, STR("broken"), (int64_t)u.broken);
	if (b)
		add_pairs(b, p, dict);
}
