/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The identities of MIKEY: read at start, and again by a reload. Calls keep their keys. */
#include <errno.h>
#include <stdio.h>

#include "app/daemon.h"
#include "base/log.h"

static int use_of(const char *text, enum mikey_use *out)
{
	static const char *const names[] = {[MIKEY_USE_ACCEPT] = "accept",
		[MIKEY_USE_OFFER] = "offer",
		[MIKEY_USE_REQUIRE] = "require"};

	for (int i = MIKEY_USE_ACCEPT; i <= MIKEY_USE_REQUIRE; i++)
		if (strcmp(text, names[i]) == 0) {
			*out = (enum mikey_use)i;
			return 0;
		}
	return -EINVAL;
}

int daemon_mikey_load(const struct daemon *d, struct mikey_config **out, char *err, size_t err_len)
{
	*out = NULL;
	return d->o.mikey_config[0] ? mikey_config_load(out, d->o.mikey_config, err, err_len) : 0;
}

static void warn(void *arg, const char *line)
{
	(void)arg;
	log_warn("%s", line);
}

int daemon_mikey_start(struct daemon *d)
{
	enum mikey_use use;
	struct mikey_config *config;
	int err = use_of(d->o.mikey, &use);

	if (err)
		snprintf(d->err, sizeof(d->err), "--mikey is accept, offer or require");
	err = err ? err : daemon_mikey_load(d, &config, d->err, sizeof(d->err));
	if (err || !config)
		return err;
	err = mikey_host_init(&d->mikey, config, use,
		&(struct mikey_clocks){.real = clock_real_ns, .mono = clock_mono_ns});
	if (err)
		return daemon_fail(d, err, "mikey-config");
	err = d->o.mikey_state[0] ? mikey_host_keep(&d->mikey, d->o.mikey_state) : 0;
	if (err)
		return daemon_fail(d, err, "mikey-state");
	log_info("MIKEY: %u peers in %s", mikey_config_peers(config), d->o.mikey_config);
	mikey_host_check(&d->mikey, warn, NULL);
	return 0;
}

void daemon_mikey_take(struct daemon *d, struct mikey_config *config)
{
	if (!config)
		return;
	mikey_host_reload(&d->mikey, config);
	mikey_host_check(&d->mikey, warn, NULL);
}

void daemon_mikey_tick(struct daemon *d)
{
	if (!d->mikey.config)
		return;
	mikey_host_tick(&d->mikey);
	mikey_host_check(&d->mikey, warn, NULL);
}

void daemon_mikey_stop(struct daemon *d)
{
	if (d->mikey.config)
		mikey_host_fini(&d->mikey);
}
