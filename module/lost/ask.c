/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ask.h"

#include <stdlib.h>
#include <string.h>

const char *const METHOD_NAMES[] = {
#define X(id) [METHOD_##id] = #id,
	METHODS(X)
#undef X
};

int ask_add_pidf(struct ask *a, const char *s, size_t len, enum method method, enum profile prefer)
{
	struct places p = {.n = 0};
	int added = 0;

	places_read(&p, s, len, prefer);
	for (int i = 0; i < p.n; i++) {
		if (a->sources == SOURCES_MAX) {
			free(p.v[i].xml);
			continue;
		}
		a->source[a->sources++] = (struct source){.method = method, .place = p.v[i]};
		added++;
	}
	return added;
}

bool ask_add_reference(struct ask *a, const char *uri, size_t len)
{
	char *copy = a->sources < SOURCES_MAX ? strndup(uri, len) : NULL;

	if (copy)
		a->source[a->sources++] = (struct source){
			.reference = true, .method = METHOD_reference, .place.xml = copy};
	return copy;
}

void ask_clear(struct ask *a)
{
	for (int i = 0; i < a->sources; i++)
		free(a->source[i].place.xml);
	free(a->service);
	free(a->argument);
	*a = (struct ask){0};
}

static size_t size_of(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

size_t ask_flat_size(const struct ask *a)
{
	size_t size = sizeof(*a) + size_of(a->service) + size_of(a->argument);

	for (int i = 0; i < a->sources; i++)
		size += size_of(a->source[i].place.xml);
	return size;
}

static char *put(char **at, const char *s)
{
	char *to = *at;

	if (!s)
		return NULL;
	memcpy(to, s, size_of(s));
	*at += size_of(s);
	return to;
}

struct ask *ask_flatten(const struct ask *a, void *block)
{
	struct ask *flat = block;
	char *at = (char *)(flat + 1);

	*flat = *a;
	flat->service = put(&at, a->service);
	flat->argument = put(&at, a->argument);
	for (int i = 0; i < a->sources; i++)
		flat->source[i].place.xml = put(&at, a->source[i].place.xml);
	return flat;
}
