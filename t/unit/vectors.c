/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the SRTP vectors. Stops at the first malformed case, so that none is skipped silently. */
#include "vectors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "hex.h"

static int get_hex(uint8_t *out, size_t max, json_t *text, uint32_t *len)
{
	const char *s = json_string_value(text);
	size_t n;

	if (!s)
		return -1;
	n = unhex(out, max, s);
	if (len)
		*len = (uint32_t)n;
	return strlen(s) == 2 * n ? 0 : -1;
}

static int get_packet(struct vector_bytes *out, json_t *c, const char *key)
{
	return get_hex(out->b, sizeof(out->b), json_object_get(c, key), &out->len);
}

static int get_session(struct srtp_session_keys *out, json_t *a)
{
	return get_hex(out->enc, sizeof(out->enc), json_array_get(a, 0), NULL) ||
		get_hex(out->auth, sizeof(out->auth), json_array_get(a, 1), NULL) ||
		get_hex(out->salt, sizeof(out->salt), json_array_get(a, 2), NULL);
}

static int get_case(struct vector *v, json_t *c)
{
	const char *suite = json_string_value(json_object_get(c, "suite"));
	const struct srtp_suite *s = srtp_suite_find(str_from(suite));
	uint32_t key_len, salt_len;

	if (!s)
		return -1;
	v->master.suite = s->id;
	v->roc = (uint32_t)json_integer_value(json_object_get(c, "roc"));
	v->srtcp_index = (uint32_t)json_integer_value(json_object_get(c, "srtcp_index"));
	v->srtcp_encrypted = json_is_true(json_object_get(c, "srtcp_encrypted"));
	if (get_hex(v->master.key, sizeof(v->master.key), json_object_get(c, "master_key"),
		    &key_len) ||
		get_hex(v->master.salt, sizeof(v->master.salt), json_object_get(c, "master_salt"),
			&salt_len) ||
		key_len != s->key_len || salt_len != s->salt_len)
		return -1;
	return get_hex(v->mki, sizeof(v->mki), json_object_get(c, "mki"), &v->mki_len) ||
		get_packet(&v->rtp, c, "rtp") || get_packet(&v->srtp, c, "srtp") ||
		get_packet(&v->rtcp, c, "rtcp") || get_packet(&v->srtcp, c, "srtcp") ||
		get_session(&v->session[0], json_object_get(c, "session_rtp")) ||
		get_session(&v->session[1], json_object_get(c, "session_rtcp"));
}

struct vector *vectors_load(const char *path, size_t *n)
{
	json_error_t e;
	json_t *root = json_load_file(path, 0, &e);
	struct vector *v;

	if (!root) {
		fprintf(stderr, "%s: %s (tests run from the top of the tree)\n", path, e.text);
		return NULL;
	}
	*n = json_array_size(root);
	v = calloc(*n ? *n : 1, sizeof(*v));
	for (size_t i = 0; v && i < *n; i++) {
		if (get_case(&v[i], json_array_get(root, i))) {
			fprintf(stderr, "%s: case %zu is not as described\n", path, i);
			free(v);
			v = NULL;
		}
	}
	json_decref(root);
	return v;
}
