/* SPDX-License-Identifier: GPL-2.0-or-later */
/* man/xcipher-ng.7 gives the status of every command, flag and key. This test tries its rows and
 * looks up all names of the code in it, so that neither can change alone. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "call_talk.h"
#include "control/handler.h"

enum section { NONE, COMMANDS, FLAGS, KEYS, SECTIONS };

struct row {
	enum section in;
	char name[48], status[16], why[160];
};

static struct row rows[256];
static size_t rows_n;

static void chomp(char *line)
{
	line[strcspn(line, "\n")] = 0;
}

/* Rows are ".It Cm NAME" in the three sections. The status follows in the next line, then a
 * reason. */
static int read_rows(void **state)
{
	static const char *const head[SECTIONS] = {"", ".Sh COMMANDS", ".Sh FLAGS", ".Sh KEYS"};
	FILE *f = fopen("man/xcipher-ng.7", "r");
	enum section in = NONE;
	char line[512];

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		chomp(line);
		if (strncmp(line, ".Sh ", 4) == 0) {
			in = NONE;
			for (int s = COMMANDS; s < SECTIONS; s++)
				if (strcmp(line, head[s]) == 0)
					in = (enum section)s;
		}
		if (in != NONE && strncmp(line, ".It Cm ", 7) == 0) {
			struct row *r = &rows[rows_n++];

			assert_true(rows_n < ARRAY_LEN(rows));
			r->in = in;
			snprintf(r->name, sizeof(r->name), "%.47s", line + 7);
			assert_non_null(fgets(line, sizeof(line), f));
			chomp(line);
			snprintf(r->status, sizeof(r->status), "%.15s", line);
			if (strcmp(r->status, "Refused.") == 0)
				assert_non_null(fgets(r->why, sizeof(r->why), f));
			chomp(r->why);
		}
	}
	fclose(f);
	return 0;
}

static const struct row *find(enum section in, const char *name)
{
	for (size_t i = 0; i < rows_n; i++)
		if (rows[i].in == in && strcmp(rows[i].name, name) == 0)
			return &rows[i];
	fail_msg("man/xcipher-ng.7 has no row for %s", name);
	return NULL;
}

static void has(enum section in, const char *name, const char *status)
{
	const struct row *r = find(in, name);

	if (strcmp(r->status, status) != 0)
		fail_msg("%s: documented as \"%s\", is \"%s\"", name, r->status, status);
}

static void what_the_code_knows_is_documented(void **state)
{
	const struct handler_refusal *refusal;
	const struct ng_known *known;
	size_t n;

	(void)state;
	for (int c = NG_NONE + 1; c < NG_COMMAND_COUNT; c++)
		has(COMMANDS, ng_command_name((enum ng_command)c), "Done.");
	refusal = handler_refusals(&n);
	for (size_t i = 0; i < n; i++) {
		has(COMMANDS, refusal[i].command, "Refused.");
		assert_string_equal(find(COMMANDS, refusal[i].command)->why, refusal[i].reason);
	}
	for (int f = 0; f < NG_FLAG_COUNT; f++)
		find(FLAGS, ng_flag_name((enum ng_flag)f));
	known = ng_known_words(&n);
	for (size_t i = 0; i < n; i++)
		has(FLAGS, known[i].name, known[i].why ? "Warned." : "Ignored.");
	known = ng_known_prefixes(&n);
	for (size_t i = 0; i < n; i++)
		has(FLAGS, known[i].name, known[i].why ? "Warned." : "Ignored.");
	for (size_t i = 0; ng_key_name(i); i++)
		find(KEYS, ng_key_name(i));
	known = ng_known_keys(&n);
	for (size_t i = 0; i < n; i++)
		has(KEYS, known[i].name, known[i].why ? "Warned." : "Ignored.");
}

static bool contains(struct str a, const char *b)
{
	return a.len && memmem(a.s, a.len, b, strlen(b));
}

/* The request for a row: a flag as a word of a raw string, a key as a dictionary entry. */
static void ask(struct row *row, struct ng_request *r, struct pool *p)
{
	struct ngval *d = ngval_dict(p);

	ngval_add_str(p, d, STR("command"), STR("offer"));
	if (row->in == FLAGS)
		ngval_add_str(p, d, STR("rtpp-flags"),
			pool_printf(p, "%s%s", row->name,
				row->name[strlen(row->name) - 1] == '-' ? "x" : ""));
	else if (strcmp(row->name, "command") != 0)
		ngval_add_str(p, d, str_from(row->name), STR(""));
	assert_int_equal(ng_request_parse(r, p, d), 0);
}

static void what_is_documented_is_so(void **state)
{
	(void)state;
	assert_true(rows_n > 100);
	for (size_t i = 0; i < rows_n; i++) {
		struct row *row = &rows[i];
		struct ng_request r;
		struct pool *p;

		if (row->in == COMMANDS)
			continue;
		assert_int_equal(pool_create(&p, 1 << 20), 0);
		ask(row, &r, p);
		if (contains(r.warning, "unknown flag"))
			fail_msg("%s is documented, and unknown", row->name);
		/* the parser accepts values whose support depends on the call; negotiation warns of
		 * them */
		if (strcmp(row->name, "fragment") != 0 &&
			!r.warning.len == !strcmp(row->status, "Warned."))
			fail_msg("%s is \"%s\", and the warning is \"%.*s\"", row->name,
				row->status, (int)r.warning.len, r.warning.s);
		pool_destroy(p);
	}
}

/* Each command with its required keys, on an existing call. */
static void commands_do_what_their_rows_say(void **state)
{
	(void)state;
	for (size_t i = 0; i < rows_n; i++) {
		char body[1024];
		struct handler *h;
		struct sbuf b;
		struct talk t;

		if (rows[i].in != COMMANDS)
			continue;
		talk_start(&t);
		talk_offer(&t, "a", "", talk_body(&t, "192.0.2.1", 4000, "RTP/AVP", ""));
		talk_answer(&t, "a", "b", talk_body(&t, "192.0.2.2", 4000, "RTP/AVP", ""));
		talk_pool(&t);
		assert_int_equal(handler_create(&h, t.c, (struct stats_source){0}, 1), 0);
		sbuf_init(&b, 65000);
		snprintf(body, sizeof(body),
			"{\"command\":\"%s\",\"call-id\":\"call\",\"from-tag\":\"a\"}",
			rows[i].name);
		handler_request(h, t.p,
			&(struct handler_message){.body = str_from(body), .encoding = NG_JSON},
			t.now, &b);
		if (strcmp(rows[i].status, "Refused.") == 0)
			assert_true(contains(sbuf_view(&b), rows[i].why));
		else if (contains(sbuf_view(&b), "Unrecognized") ||
			contains(sbuf_view(&b), "Not supported: "))
			fail_msg("%s: %.*s", rows[i].name, (int)b.len, (const char *)b.p);
		sbuf_fini(&b);
		handler_destroy(h);
		talk_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_code_knows_is_documented),
		cmocka_unit_test(what_is_documented_is_so),
		cmocka_unit_test(commands_do_what_their_rows_say),
	};

	return cmocka_run_group_tests(tests, read_rows, NULL);
}
