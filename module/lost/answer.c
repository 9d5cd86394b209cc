/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answer.h"

#include <stdlib.h>
#include <string.h>

void answer_set(struct answer *a, enum answer_text i, char *text)
{
	free(a->text[i]);
	a->text[i] = text;
}

void answer_put(struct answer *a, enum answer_text i, const char *text)
{
	answer_set(a, i, text && *text ? strdup(text) : NULL);
}

void answer_clear(struct answer *a)
{
	for (int i = 0; i < ANSWER_TEXT_COUNT; i++)
		free(a->text[i]);
	*a = (struct answer){0};
}

size_t answer_flat_size(const struct answer *a)
{
	size_t size = sizeof(*a);

	for (int i = 0; i < ANSWER_TEXT_COUNT; i++)
		size += a->text[i] ? strlen(a->text[i]) + 1 : 0;
	return size;
}

struct answer *answer_flatten(const struct answer *a, void *block)
{
	struct answer *flat = block;
	char *at = (char *)(flat + 1);

	*flat = *a;
	for (int i = 0; i < ANSWER_TEXT_COUNT; i++) {
		size_t len = a->text[i] ? strlen(a->text[i]) + 1 : 0;

		if (!len)
			continue;
		memcpy(at, a->text[i], len);
		flat->text[i] = at;
		at += len;
	}
	return flat;
}

bool answer_copy(struct answer *to, const struct answer *from)
{
	bool ok = true;

	*to = *from;
	for (int i = 0; i < ANSWER_TEXT_COUNT; i++) {
		to->text[i] = from->text[i] ? strdup(from->text[i]) : NULL;
		ok = ok && (to->text[i] || !from->text[i]);
	}
	if (!ok)
		answer_clear(to);
	return ok;
}
