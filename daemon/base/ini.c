/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration files (base/ini.h). Lines may have any length: a list of suites is longer than the
 * limit of common libraries. A comment begins with ; or # on a line of its own, or with a blank and
 * ; after a value. */
#include "base/ini.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
	const struct ini_reader *how;
	void *arg;
	char *section, *name, *value; /* heap; of the entry that the next line may continue */
	int line, begun; /* numbers of the current line, and of the entry's first line */
};

static char *trimmed(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		end--;
	*end = 0;
	return s;
}

static void cut_comment(char *value)
{
	for (char *c = value; *c; c++)
		if (*c == ';' && (c == value || isspace((unsigned char)c[-1]))) {
			*c = 0;
			return;
		}
}

/* Ends the entry: later lines do not continue it. Returns 0, or its line number if it is wrong. */
static int entry_end(struct reading *r)
{
	bool good = !r->name || r->how->entry(r->arg, r->section, r->name, r->value);

	free(r->name);
	free(r->value);
	r->name = r->value = NULL;
	return good ? 0 : r->begun;
}

static int entry_more(struct reading *r, const char *text)
{
	size_t len = strlen(r->value);
	char *longer = realloc(r->value, len + strlen(text) + 2);

	if (!longer)
		return -ENOMEM;
	if (len)
		longer[len++] = ' ';
	strcpy(longer + len, text);
	r->value = longer;
	return 0;
}

static int entry_begin(struct reading *r, char *text)
{
	char *sign = text + strcspn(text, "=:");

	if (!*sign)
		return r->line;
	*sign = 0;
	cut_comment(sign + 1);
	r->name = strdup(trimmed(text));
	r->value = strdup(trimmed(sign + 1));
	r->begun = r->line;
	return r->name && r->value ? 0 : -ENOMEM;
}

static int section_begin(struct reading *r, char *text)
{
	char *end = strchr(text, ']'), *name;

	if (!end)
		return r->line;
	*end = 0;
	name = strdup(text + 1);
	if (!name)
		return -ENOMEM;
	free(r->section);
	r->section = name;
	return !r->how->section || r->how->section(r->arg, name) ? 0 : r->line;
}

static int read_line(struct reading *r, char *line)
{
	bool indented = isspace((unsigned char)line[0]);
	char *text = trimmed(line);
	int err;

	if (!*text || *text == ';' || *text == '#')
		return 0;
	if (indented && r->name) {
		cut_comment(text);
		return entry_more(r, trimmed(text));
	}
	err = entry_end(r);
	if (err)
		return err;
	return *text == '[' ? section_begin(r, text) : entry_begin(r, text);
}

int ini_read_stream(FILE *f, const struct ini_reader *how, void *arg)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct reading r = {.how = how, .arg = arg, .section = strdup("")};
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int err = r.section ? 0 : -ENOMEM;

	errno = 0;
	while (!err && (n = getline(&line, &cap, f)) >= 0) {
		bool marked = r.line++ == 0 && strncmp(line, bom, sizeof(bom) - 1) == 0;

		err = memchr(line, 0, (size_t)n)
			? r.line
			: read_line(&r, line + (marked ? sizeof(bom) - 1 : 0));
	}
	if (!err && ferror(f))
		err = errno ? -errno : -EIO;
	if (!err)
		err = entry_end(&r);
	free(r.name);
	free(r.value);
	free(r.section);
	free(line);
	return err;
}

int ini_read(const char *path, ini_entry *entry, void *arg)
{
	const struct ini_reader how = {.entry = entry};
	FILE *f = fopen(path, "re");
	int err = f ? ini_read_stream(f, &how, arg) : -errno;

	if (f)
		fclose(f);
	return err;
}
