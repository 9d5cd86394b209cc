/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/tables.h"

__attribute__((format(printf, 2, 3))) static int refuse(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, CODEC_WHY_MAX, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

bool codec_name_valid(const char *name)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._+";
	size_t len = name ? strnlen(name, CODEC_NAME_MAX) : 0;

	return len > 0 && len < CODEC_NAME_MAX && strspn(name, allowed) == len;
}

static int check_sizes(const struct xcipher_codec *c, char *why)
{
	if (c->align == 0 || c->align > XCIPHER_CODEC_MAX_ALIGN || c->align & (c->align - 1))
		return refuse(why, "%s: align %u is not a power of two up to %u", c->name, c->align,
			XCIPHER_CODEC_MAX_ALIGN);
	if (c->params_size > XCIPHER_CODEC_MAX_PARAMS)
		return refuse(why, "%s: params_size %u exceeds %u", c->name, c->params_size,
			XCIPHER_CODEC_MAX_PARAMS);
	if (c->dec_size > XCIPHER_CODEC_MAX_STATE || c->enc_size > XCIPHER_CODEC_MAX_STATE)
		return refuse(
			why, "%s: a state exceeds %u bytes", c->name, XCIPHER_CODEC_MAX_STATE);
	if (c->params_size && !c->fmtp_parse)
		return refuse(why, "%s: parameters without fmtp_parse", c->name);
	return 0;
}

static int check_audio(const struct xcipher_codec *c, char *why)
{
	if (c->clock == 0 || c->clock > 192000)
		return refuse(why, "%s: clock %u", c->name, c->clock);
	if (c->rate < 8000 || c->rate > XCIPHER_CODEC_MAX_RATE)
		return refuse(why, "%s: rate %u is not between 8000 and %u", c->name, c->rate,
			XCIPHER_CODEC_MAX_RATE);
	if (c->channels != 1 && c->channels != 2)
		return refuse(why, "%s: %u channels", c->name, c->channels);
	if (c->static_pt < -1 || c->static_pt > 34)
		return refuse(why, "%s: static payload type %d", c->name, c->static_pt);
	if (c->frame_samples == 0 || c->frame_samples > XCIPHER_CODEC_MAX_PCM)
		return refuse(why, "%s: frame_samples %u", c->name, c->frame_samples);
	if (c->ptime == 0 || c->ptime > 120 ||
		(uint64_t)c->ptime * c->rate / 1000 % c->frame_samples)
		return refuse(why, "%s: ptime %u is not a multiple of the frame, up to 120",
			c->name, c->ptime);
	return 0;
}

static int check_codec(const struct xcipher_codec *c, char *why)
{
	int rc = 0;

	if (!c || c->size < sizeof(*c))
		return refuse(why, "a codec's table is missing or too short");
	if (!codec_name_valid(c->name))
		return refuse(why, "a codec's name is not a name of RTP");
	if (!c->decode && !c->encode)
		return refuse(why, "%s: neither decode nor encode", c->name);
	if (c->direct_n && !c->direct)
		return refuse(why, "%s: direct_n without direct", c->name);
	for (uint32_t i = 0; i < c->direct_n; i++)
		if (c->direct[i].size < sizeof(c->direct[i]) ||
			!codec_name_valid(c->direct[i].to) || !c->direct[i].convert ||
			c->direct[i].state_size > XCIPHER_CODEC_MAX_STATE)
			return refuse(why, "%s: direct conversion %u", c->name, i);
	rc = check_sizes(c, why);
	return rc ? rc : check_audio(c, why);
}

int codec_check_plugin(const struct xcipher_codec_plugin *p, char *why)
{
	if (!p)
		return refuse(why, "it declines to work here");
	if (p->abi != XCIPHER_CODEC_ABI)
		return refuse(why, "it has version %u of the interface, not %u", p->abi,
			XCIPHER_CODEC_ABI);
	if (p->size < sizeof(*p))
		return refuse(why, "its table has %u bytes, not %zu", p->size, sizeof(*p));
	if (!codec_name_valid(p->name))
		return refuse(why, "its name is not a name");
	if (!p->version || strnlen(p->version, CODEC_NAME_MAX) == CODEC_NAME_MAX || !p->license ||
		strnlen(p->license, CODEC_NAME_MAX) == CODEC_NAME_MAX)
		return refuse(why, "version or license is missing or longer than %d bytes",
			CODEC_NAME_MAX - 1);
	if (p->codecs > XCIPHER_CODEC_MAX_CODECS || (p->codecs && !p->codec))
		return refuse(why, "it has %u codecs, at most %u are allowed", p->codecs,
			XCIPHER_CODEC_MAX_CODECS);
	if (!p->codecs && !p->resampler)
		return refuse(why, "it has no codecs");
	for (uint32_t i = 0; i < p->codecs; i++) {
		int rc = check_codec(p->codec[i], why);

		if (rc)
			return rc;
	}
	if (p->resampler &&
		(p->resampler->size < sizeof(*p->resampler) || !p->resampler->init ||
			!p->resampler->run || p->resampler->align == 0 ||
			p->resampler->state_size > XCIPHER_CODEC_MAX_STATE))
		return refuse(why, "its resampler");
	return 0;
}

/* Checks the version first, because all else depends on it. */
static int check_copy(
	const struct xcipher_codec_plugin *p, struct xcipher_codec_plugin **out, char *why)
{
	const char *reason = NULL;
	int rc;

	if (!p || p->abi != XCIPHER_CODEC_ABI)
		return codec_check_plugin(p, why);
	*out = codec_tables_copy(p, &reason);
	if (!*out)
		return refuse(why, "%s", reason ? reason : "no memory");
	rc = codec_check_plugin(*out, why);
	if (rc)
		free(*out);
	return rc;
}

int codec_check_open(const char *path, void **handle, struct xcipher_codec_plugin **out, char *why)
{
	const struct xcipher_codec_plugin *(*get)(void) = NULL;
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int rc = 0;

	if (!lib) {
		refuse(why, "%s", dlerror());
		return -ENOENT;
	}
	*(void **)&get = dlsym(lib, XCIPHER_CODEC_SYMBOL);
	if (!get)
		rc = refuse(why, "it does not export " XCIPHER_CODEC_SYMBOL);
	else
		rc = check_copy(get(), out, why);
	if (rc) {
		dlclose(lib);
		return rc;
	}
	*handle = lib;
	return 0;
}
