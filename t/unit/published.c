/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads published vectors (published.h). Stops at the first malformed one, so that no vector is
 * skipped silently. */
#include "published.h"

#include <jansson.h>
#include <stdlib.h>

#include "hex.h"

/* A suite's name, a section and "rtp" are words, not bytes. */
static int field_get(struct published *v, size_t i, json_t *text)
{
	const char *s = json_string_value(text);

	if (!s || i >= PUBLISHED_MAX_FIELDS)
		return -1;
	v->text[i] = s;
	if (strspn(s, "0123456789abcdef") != strlen(s))
		return 0;
	v->len[i] = (uint32_t)unhex(v->b[i], PUBLISHED_MAX_LEN, s);
	return strlen(s) == 2 * (size_t)v->len[i] ? 0 : -1;
}

static int group_get(struct published_set *out, json_t *group)
{
	json_t *vectors = json_object_get(group, "vectors");
	size_t fields = json_array_size(json_object_get(group, "fields")), i, f;
	json_t *vector, *text;

	json_array_foreach(vectors, i, vector)
	{
		struct published *v = &out->v[out->n++];

		v->source = json_string_value(json_object_get(group, "source"));
		v->n = (unsigned)i;
		json_array_foreach(vector, f, text) if (field_get(v, f, text)) return -1;
		if (!v->source || json_array_size(vector) != fields)
			return -1;
	}
	return 0;
}

int published_load(struct published_set *out, const char *kind)
{
	json_error_t e;
	json_t *root = json_load_file(PUBLISHED_PATH, 0, &e), *group;
	size_t n = 0, i;

	*out = (struct published_set){.file = root};
	if (!root) {
		fprintf(stderr, "%s: %s (tests run from the top of the tree)\n", PUBLISHED_PATH,
			e.text);
		return -1;
	}
	json_array_foreach(root, i, group) n += json_array_size(json_object_get(group, "vectors"));
	out->v = calloc(n + 1, sizeof(*out->v));
	json_array_foreach(root, i, group)
	{
		const char *k = json_string_value(json_object_get(group, "kind"));

		if (out->v && k && strcmp(k, kind) == 0 && group_get(out, group)) {
			fprintf(stderr, "%s: group %zu is not as described\n", PUBLISHED_PATH, i);
			published_free(out);
			return -1;
		}
	}
	if (out->n)
		return 0;
	fprintf(stderr, "%s: no vectors of kind %s\n", PUBLISHED_PATH, kind);
	published_free(out);
	return -1;
}

void published_free(struct published_set *s)
{
	free(s->v);
	json_decref(s->file);
	*s = (struct published_set){0};
}
