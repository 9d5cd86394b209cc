/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks the parameters of the module. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <core/dprint.h>

#include "settings.h"

static int words_check(void)
{
	static const char *const names[] = {
#define X(id, name) name,
		BOUNDARIES(X)
#undef X
	};
	int i = 0;

	while (i < BOUNDARY_COUNT && strcmp(settings.boundary_name, names[i]))
		i++;
	if (i == BOUNDARY_COUNT) {
		LM_ERR("boundary must be reference, value or none\n");
		return -1;
	}
	settings.boundary = (enum boundary)i;
	settings.prefer = strcmp(settings.prefer_name, "civic") ? PROFILE_GEODETIC : PROFILE_CIVIC;
	if (settings.prefer == PROFILE_GEODETIC && strcmp(settings.prefer_name, "geodetic")) {
		LM_ERR("prefer must be geodetic or civic\n");
		return -1;
	}
	return 0;
}

/* The name of a parameter that is neither 0 nor 1, or NULL. */
static const char *not_binary(void)
{
	const struct {
		const char *name;
		int value;
	} binary[] = {{"verify", settings.verify},
		{"allow_http_reference", settings.allow_http_reference},
		{"recursive", settings.recursive}, {"discover", settings.discover},
		{"log_location", settings.log_location}};

	for (size_t i = 0; i < sizeof(binary) / sizeof(binary[0]); i++)
		if (binary[i].value != 0 && binary[i].value != 1)
			return binary[i].name;
	return NULL;
}

/* The name of a file that cannot be read, or NULL. */
static const char *unreadable(void)
{
	const char *const files[] = {settings.ca_file, settings.cert_file, settings.key_file};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i] && access(files[i], R_OK))
			return files[i];
	return NULL;
}

static bool has_names(void)
{
	for (int i = 0; i < settings.servers; i++)
		if (!strncmp(settings.server_url[i], "lost:", 5))
			return true;
	return false;
}

int settings_check(void)
{
	const struct settings *s = &settings;

	if (s->timeout < 1 || s->connect_timeout < 1 || s->deadline < s->timeout ||
		s->down_time < 0) {
		LM_ERR("timeout and connect_timeout must be positive, deadline at least timeout\n");
		return -1;
	}
	if (s->clients < 1 || s->clients > CLIENTS_MAX || s->queries < 1 || s->queries > 65536 ||
		s->max_response < 1024 || s->max_redirects < 0 ||
		s->max_redirects > REDIRECTS_MAX) {
		LM_ERR("clients must be 1 to %d, queries 1 to 65536, max_response at least 1024, max_redirects 0 to %d\n",
			CLIENTS_MAX, REDIRECTS_MAX);
		return -1;
	}
	if (s->keep_exchanges < 0 || s->keep_exchanges > 65536) {
		LM_ERR("keep_exchanges must be 0 to 65536\n");
		return -1;
	}
	if (s->cache_entries < 0 || s->cache_size < 1 || s->cache_max_age < 1) {
		LM_ERR("cache_entries, cache_size or cache_max_age is out of range\n");
		return -1;
	}
	if (not_binary()) {
		LM_ERR("%s must be 0 or 1\n", not_binary());
		return -1;
	}
	if (s->reference_hosts && strchr(s->reference_hosts, '*')) {
		LM_ERR("reference_hosts has no *: \".example.net\" means all names below it\n");
		return -1;
	}
	if (unreadable()) {
		LM_ERR("cannot read %s: %s\n", unreadable(), strerror(errno));
		return -1;
	}
	/* With the system's authorities, whoever forges DNS replies would route the calls. */
	if (has_names() && !s->ca_file) {
		LM_ERR("lost:NAME needs ca_file, with the authorities of the network only\n");
		return -1;
	}
	if (!s->servers)
		LM_WARN("no server is configured: every LoST query will fail\n");
	if (!s->verify)
		LM_WARN("verify is 0: anyone on the path can answer for the servers\n");
	return words_check();
}
