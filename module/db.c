/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the table of the stock module rtpengine (setid, url, weight, disabled), so that one table
 * can serve both. Each read opens and closes a connection: at the start in the main process, later
 * in the process that runs the RPC command. SIP workers never wait for a database. Uses Kamailio's
 * DB API only, so its library is not linked. */
#include "db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <core/dprint.h>
#include <core/sr_module.h>
#include <lib/srdb1/db.h>

#include "settings.h"

#define ROWS_MAX 1024
#define LINE_LEN 400

/* The URL begins with the module's name: "sqlite:///etc/kamailio/kamailio.sqlite". */
static int bind_module(db_func_t *f, const char *url)
{
	char name[64];
	const char *colon = strchr(url, ':');
	db_bind_api_f get;

	if (!colon ||
		snprintf(name, sizeof(name), "db_%.*s", (int)(colon - url), url) >=
			(int)sizeof(name)) {
		LM_ERR("db_url \"%.*s...\" names no module\n", 12, url);
		return -1;
	}
	get = find_module_by_name(name)
		? (db_bind_api_f)(void *)find_mod_export(name, "db_bind_api", 0, 0)
		: NULL;
	memset(f, 0, sizeof(*f));
	if (!get || get(f) < 0 || !f->init || !f->close || !f->use_table || !f->query ||
		!f->free_result) {
		LM_ERR("%s.so must be loaded before this module\n", name);
		return -1;
	}
	return 0;
}

static int number_of(const db_val_t *v, int otherwise)
{
	if (VAL_NULL(v))
		return otherwise;
	switch (VAL_TYPE(v)) {
	case DB1_INT:
		return VAL_INT(v);
	case DB1_BIGINT:
		return (int)VAL_BIGINT(v);
	case DB1_STRING:
		return atoi(VAL_STRING(v));
	default:
		return otherwise;
	}
}

static const char *text_of(const db_val_t *v, char *buf, size_t size)
{
	if (VAL_NULL(v))
		return "";
	if (VAL_TYPE(v) == DB1_STRING)
		return VAL_STRING(v);
	if (VAL_TYPE(v) != DB1_STR || (size_t)VAL_STR(v).len >= size)
		return "";
	snprintf(buf, size, "%.*s", VAL_STR(v).len, VAL_STR(v).s);
	return buf;
}

static char *lines_of(const db1_res_t *r)
{
	int rows = RES_ROW_N(r) < ROWS_MAX ? RES_ROW_N(r) : ROWS_MAX;
	char *text = malloc((size_t)rows * LINE_LEN + 1), buf[256];
	size_t n = 0;

	if (!text)
		return NULL;
	text[0] = 0;
	for (int i = 0; i < rows; i++) {
		const db_val_t *v = ROW_VALUES(&RES_ROWS(r)[i]);
		const char *url = text_of(&v[1], buf, sizeof(buf));

		/* Rejects characters that would start another line or word of the list. */
		if (!*url || strlen(url) >= sizeof(buf) || strpbrk(url, " \t\r\n;#=")) {
			LM_ERR("table %s: \"%.60s\" is no node\n", settings.db_table, url);
			free(text);
			return NULL;
		}
		n += (size_t)snprintf(text + n, LINE_LEN, "set %u == %s=%u%s\n",
			(unsigned)number_of(&v[0], 0), url, (unsigned)number_of(&v[2], 1),
			number_of(&v[3], 0) ? " disabled" : "");
	}
	return text;
}

char *db_nodes(void)
{
	str url = {settings.db_url, (int)strlen(settings.db_url)};
	str table = {settings.db_table, (int)strlen(settings.db_table)};
	str name[4] = {
		str_init("setid"), str_init("url"), str_init("weight"), str_init("disabled")};
	db_key_t columns[4] = {&name[0], &name[1], &name[2], &name[3]};
	db1_res_t *res = NULL;
	db1_con_t *con;
	char *text = NULL;
	db_func_t f;

	if (bind_module(&f, settings.db_url))
		return NULL;
	con = f.init(&url);
	if (con && f.use_table(con, &table) >= 0 &&
		f.query(con, NULL, NULL, NULL, columns, 0, 4, NULL, &res) >= 0 && res)
		text = lines_of(res);
	else
		LM_ERR("table %s of the database cannot be read\n", settings.db_table);
	if (res)
		f.free_result(con, res);
	if (con)
		f.close(con);
	return text;
}
