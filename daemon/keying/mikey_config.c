/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the file of identities, and finds peers in it. */
#include "keying/mikey_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/ini.h"
#include "base/secmem.h"
#include "keying/mikey_files.h"
#include "keying/mikey_int.h"
#include "keying/mikey_trust.h"

#define ROWS     32u /* peers per block of secure memory */
#define SKEW_MAX 86400u
#define RATE_MAX 100000u
/* Default rates. An exchange takes up to 4 ms, so all peers get a fifth of the thread, and one peer
 * a 25th. */
#define RATE_ALL  50u
#define RATE_PEER 10u
#define DAY_S     86400

struct row {
	char name[MIKEY_ID_MAX + 1];
	struct mikey_psk psk;
	struct mikey_cert *cert;
	uint8_t mode[MIKEY_MODE_COUNT];
	uint32_t modes;
	bool may_initiate, may_respond;
	uint32_t rate;
	bool has_rate;
};

struct block {
	struct block *next;
	uint32_t n;
	struct row row[ROWS];
};

struct mikey_config {
	struct mikey_identity mine;
	char cert_path[MIKEY_PATH], crl_path[MIKEY_PATH]; /* "": none */
	struct mikey_trust *trust;
	struct mikey_limits limits;
	struct block *blocks;
	uint32_t peers;
};

struct reading {
	struct mikey_config *c;
	struct mikey_files files;
	char roots[MIKEY_PATH];
	struct row *row; /* of the section */
};

int mikey_id_from_text(struct mikey_id *out, struct str text)
{
	bool uri = text.len && memchr(text.s, ':', text.len);

	if (!text.len)
		return -EINVAL;
	return mikey_id_set(out, uri ? MIKEY_ID_URI : MIKEY_ID_NAI, text);
}

/* --- Entries ---------------------------------------------------------------------------------- */

static struct row *row_add(struct reading *r, const char *name)
{
	struct mikey_config *c = r->c;

	if (!*name || strlen(name) > MIKEY_ID_MAX || c->peers == MIKEY_PEERS_MAX)
		return NULL;
	if (!c->blocks || c->blocks->n == ROWS) {
		struct block *b = secmem_alloc(sizeof(*b));

		if (!b)
			return NULL;
		b->next = c->blocks;
		c->blocks = b;
	}
	r->row = &c->blocks->row[c->blocks->n++];
	c->peers++;
	strcpy(r->row->name, name);
	r->row->may_initiate = r->row->may_respond = true;
	return r->row;
}

static bool set_modes(struct row *row, const char *value)
{
	struct str rest = str_from(value), word;

	row->modes = 0;
	while ((word = str_word(&rest)).len) {
		enum mikey_mode m = mikey_mode_find(word);

		if (m == MIKEY_MODE_COUNT || row->modes == MIKEY_MODE_COUNT)
			return false;
		row->mode[row->modes++] = (uint8_t)m;
	}
	return row->modes;
}

static bool set_may(struct row *row, const char *value)
{
	struct str rest = str_from(value), word;

	row->may_initiate = row->may_respond = false;
	while ((word = str_word(&rest)).len) {
		if (str_eq(word, STR("initiate")))
			row->may_initiate = true;
		else if (str_eq(word, STR("respond")))
			row->may_respond = true;
		else
			return false;
	}
	return true;
}

static bool set_rate(struct reading *r, uint32_t *rate, const char *name, const char *value)
{
	uint64_t n;

	if (str_to_u64(&n, str_from(value), RATE_MAX))
		return mikey_complain(&r->files,
			"--mikey-config: %s is 0 to %u exchanges per second, 0 = no limit", name,
			RATE_MAX);
	*rate = (uint32_t)n;
	return true;
}

static bool peer_entry(struct reading *r, const char *name, const char *value)
{
	if (strcmp(name, "psk-file") == 0)
		return mikey_file_psk(&r->files, &r->row->psk, value);
	if (strcmp(name, "certificate") == 0)
		return mikey_file_cert(&r->files, &r->row->cert, value, false);
	if (strcmp(name, "modes") == 0)
		return set_modes(r->row, value) ||
			mikey_complain(
				&r->files, "--mikey-config: modes are psk, pke, dh, dhhmac, rsa-r");
	if (strcmp(name, "may") == 0)
		return set_may(r->row, value) ||
			mikey_complain(
				&r->files, "--mikey-config: may is initiate, respond, or both");
	if (strcmp(name, "rate") == 0) {
		r->row->has_rate = true;
		return set_rate(r, &r->row->rate, name, value);
	}
	return mikey_complain(
		&r->files, "--mikey-config: %s is not a name of a [peer] section", name);
}

static bool set_flag(struct reading *r, bool *flag, const char *name, const char *value)
{
	*flag = strcmp(value, "yes") == 0;
	return *flag || strcmp(value, "no") == 0 ||
		mikey_complain(&r->files, "--mikey-config: %s is yes or no", name);
}

static bool self_entry(struct reading *r, const char *name, const char *value)
{
	struct mikey_config *c = r->c;
	uint64_t n;

	if (strcmp(name, "identity") == 0)
		return mikey_id_from_text(&c->mine.id, str_from(value)) == 0 ||
			mikey_complain(
				&r->files, "--mikey-config: identity has 1 to 255 characters");
	if (strcmp(name, "certificate") == 0)
		return mikey_file_cert(&r->files, &c->mine.cert, value, true) &&
			mikey_file_place(&r->files, c->cert_path, value);
	if (strcmp(name, "roots") == 0)
		return mikey_file_place(&r->files, r->roots, value);
	if (strcmp(name, "crl") == 0)
		return mikey_file_place(&r->files, c->crl_path, value);
	if (strcmp(name, "rate") == 0)
		return set_rate(r, &c->limits.rates.all, name, value);
	if (strcmp(name, "peer-rate") == 0)
		return set_rate(r, &c->limits.rates.peer, name, value);
	if (strcmp(name, "weak-dh") == 0)
		return set_flag(r, &c->limits.weak_dh, name, value);
	if (strcmp(name, "null-encryption") == 0)
		return set_flag(r, &c->limits.null_key_encryption, name, value);
	if (strcmp(name, "skew") == 0) {
		bool good = str_to_u64(&n, str_from(value), SKEW_MAX) == 0 && n;

		c->limits.skew_s = good ? (uint32_t)n : 0;
		return good ||
			mikey_complain(&r->files, "--mikey-config: skew is 1 to 86400 seconds");
	}
	return mikey_complain(
		&r->files, "--mikey-config: %s is not a name of section [self]", name);
}

/* Keeps a section without entries, with the defaults: its peer must not get the rights of its
 * domain's section. */
static bool section(void *arg, const char *name)
{
	struct reading *r = arg;

	r->row = NULL;
	if (strcmp(name, "self") == 0)
		return true;
	if (strncmp(name, "peer ", 5) != 0)
		return mikey_complain(
			&r->files, "--mikey-config: sections are [self] and [peer IDENTITY]");
	return row_add(r, name + 5) ||
		mikey_complain(
			&r->files, "--mikey-config: more than 4096 peers, or a name is too long");
}

static bool entry(void *arg, const char *section, const char *name, const char *value)
{
	struct reading *r = arg;

	if (r->row)
		return peer_entry(r, name, value);
	if (strcmp(section, "self") == 0)
		return self_entry(r, name, value);
	return mikey_complain(&r->files, "--mikey-config: sections are [self] and [peer IDENTITY]");
}

/* --- The whole file --------------------------------------------------------------------------- */

/* Sorts equal names next to each other. Case matters in users, not in domains. */
static int by_name(const void *a, const void *b)
{
	const char *x = (*(const struct row *const *)a)->name;
	const char *y = (*(const struct row *const *)b)->name;
	int d = strcasecmp(x, y);

	return d ? d : strncmp(x, y, strchr(x, '@') ? strcspn(x, "@") : 0);
}

/* Two sections of one peer are an error, because only one could be used. */
static bool check_unique(struct reading *r)
{
	const struct row **row = calloc(r->c->peers + 1, sizeof(*row));
	const char *twice = NULL;
	uint32_t n = 0;

	if (!row)
		return mikey_complain(&r->files, "out of memory");
	for (const struct block *b = r->c->blocks; b; b = b->next)
		for (uint32_t i = 0; i < b->n; i++)
			row[n++] = &b->row[i];
	qsort(row, n, sizeof(*row), by_name);
	for (uint32_t i = 1; i < n; i++)
		if (mikey_name_eq(str_from(row[i - 1]->name), str_from(row[i]->name)))
			twice = row[i]->name;
	free(row);
	return !twice || mikey_complain(&r->files, "--mikey-config: two sections [peer %s]", twice);
}

/* Without the entry, the modes that the peer has keys for. PSK and PKE are those that every
 * implementation has (RFC 3830 3.1, 3.2). */
static void default_modes(const struct mikey_config *c, struct row *row)
{
	static const uint8_t shared[] = {MIKEY_PSK, MIKEY_DHHMAC};
	bool certs = c->mine.cert && c->trust;

	if (row->modes)
		return;
	if (row->psk.len)
		for (size_t i = 0; i < sizeof(shared); i++)
			row->mode[row->modes++] = shared[i];
	if (!certs)
		return;
	row->mode[row->modes++] = MIKEY_DH;
	row->mode[row->modes++] = MIKEY_RSAR;
	row->mode[row->modes++] = MIKEY_PKE;
}

static bool load_trust(struct reading *r)
{
	struct str roots, crl = STR_NONE;
	int err;

	if (!r->roots[0])
		return !r->c->crl_path[0] ||
			mikey_complain(&r->files, "--mikey-config: crl needs roots");
	if (!mikey_file_read(&r->files, r->roots, &roots))
		return false;
	if (r->c->crl_path[0] && !mikey_file_read(&r->files, r->c->crl_path, &crl)) {
		free((char *)(uintptr_t)roots.s);
		return false;
	}
	err = mikey_trust_load(&r->c->trust, roots, crl);
	free((char *)(uintptr_t)roots.s);
	free((char *)(uintptr_t)crl.s);
	return !err ||
		mikey_complain(&r->files,
			"--mikey-config: roots or crl: not PEM, empty, or a part is damaged");
}

/* Adds the file and the line to the complaint of an entry or a section. */
static void name_line(struct reading *r, int line)
{
	static const char option[] = "--mikey-config: ";
	char *why = strdup(r->files.err);
	bool plain = why && strncmp(why, option, sizeof(option) - 1) == 0;

	if (plain)
		mikey_complain(&r->files, "%s%s, line %d: %s", option, r->files.path, line,
			why + sizeof(option) - 1);
	free(why);
}

/* 0, -errno, or the number of a wrong line. */
static int read_file(struct reading *r)
{
	static const struct ini_reader how = {.entry = entry, .section = section};
	FILE *f = mikey_file_open(r->files.path);
	int line = f ? ini_read_stream(f, &how, r) : -errno;

	if (f)
		fclose(f);
	if (line < 0)
		mikey_complain(&r->files, "--mikey-config: %s: %s. %s", r->files.path,
			line == -EINVAL ? "not a regular file" : strerror(-line),
			line == -ENOENT
				? "Create it as xcipher-keying(7) describes, or leave the option out"
				: "It must be a file that xcipherd may read");
	if (line > 0 && !r->files.err[0])
		mikey_complain(&r->files, "--mikey-config: not of the form name = value");
	if (line > 0)
		name_line(r, line);
	return line;
}

int mikey_config_load(struct mikey_config **out, const char *path, char *err, size_t err_len)
{
	struct reading r = {.c = calloc(1, sizeof(*r.c)), .files = {path, err, err_len}};
	int line;

	if (!r.c) {
		mikey_complain(&r.files, "out of memory");
		return -ENOMEM;
	}
	err[0] = 0;
	r.c->limits.skew_s = MIKEY_SKEW_S;
	r.c->limits.rates = (struct mikey_rates){.all = RATE_ALL, .peer = RATE_PEER};
	line = read_file(&r);
	if (!line && !r.c->mine.id.len)
		mikey_complain(
			&r.files, "--mikey-config: %s: set identity in section [self]", path);
	if (err[0] || !check_unique(&r) || !load_trust(&r)) {
		mikey_config_destroy(r.c);
		return line < 0 ? line : -EINVAL;
	}
	for (struct block *b = r.c->blocks; b; b = b->next)
		for (uint32_t i = 0; i < b->n; i++)
			default_modes(r.c, &b->row[i]);
	*out = r.c;
	return 0;
}

void mikey_config_destroy(struct mikey_config *c)
{
	if (!c)
		return;
	for (struct block *b = c->blocks, *next; b; b = next) {
		next = b->next;
		for (uint32_t i = 0; i < b->n; i++)
			mikey_cert_free(b->row[i].cert);
		secmem_free(b, sizeof(*b));
	}
	mikey_cert_free(c->mine.cert);
	mikey_trust_free(c->trust);
	free(c);
}

/* --- Warnings --------------------------------------------------------------------------------- */

struct warning {
	void (*warn)(void *arg, const char *line);
	void *arg;
};

/* when_s: the date in the text. */
static void warn_of(const struct warning *w, const char *path, const char *what, int64_t when_s)
{
	char line[MIKEY_PATH + 256], date[32] = "?";
	time_t when = (time_t)when_s;
	struct tm tm;

	if (gmtime_r(&when, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm);
	snprintf(line, sizeof(line), "MIKEY: %s: %s %s", path, what, date);
	w->warn(w->arg, line);
}

void mikey_config_check(const struct mikey_config *c, int64_t now_s,
	void (*warn)(void *arg, const char *line), void *arg)
{
	const struct warning w = {warn, arg};
	int64_t cert = c->mine.cert ? mikey_cert_until(c->mine.cert) : INT64_MAX;
	int64_t crl = c->trust ? mikey_trust_until(c->trust) : INT64_MAX;
	char line[MIKEY_PATH + MIKEY_ID_MAX + 128];

	if (c->mine.cert && !mikey_cert_has(c->mine.cert, &c->mine.id)) {
		snprintf(line, sizeof(line),
			"MIKEY: %s: the certificate does not have the identity %.*s, so peers may refuse it: correct one of them",
			c->cert_path, (int)c->mine.id.len, c->mine.id.name);
		warn(arg, line);
	}
	if (cert <= now_s)
		warn_of(&w, c->cert_path,
			"peers may refuse the certificate: replace it, because it expired on",
			cert);
	else if (cert - now_s <= MIKEY_WARN_CERT_DAYS * DAY_S)
		warn_of(&w, c->cert_path, "replace the certificate before it expires on", cert);
	if (crl <= now_s)
		warn_of(&w, c->crl_path,
			"xcipherd refuses certificates: replace the revocation list that was valid until",
			crl);
	else if (crl - now_s <= MIKEY_WARN_CRL_DAYS * DAY_S)
		warn_of(&w, c->crl_path, "replace the revocation list that is valid only until",
			crl);
}

/* --- Look-up ---------------------------------------------------------------------------------- */

static const struct row *find(const struct mikey_config *c, struct str name)
{
	for (const struct block *b = c->blocks; b; b = b->next)
		for (uint32_t i = 0; i < b->n; i++)
			if (mikey_name_eq(name, str_from(b->row[i].name)))
				return &b->row[i];
	return NULL;
}

static const struct row *find_domain(const struct mikey_config *c, struct str name)
{
	const char *at = name.len ? memrchr(name.s, '@', name.len) : NULL;
	char text[MIKEY_ID_MAX + 2];
	int n;

	if (!at)
		return NULL;
	n = snprintf(text, sizeof(text), "*%.*s", (int)(name.s + name.len - at), at);
	return find(c, (struct str){text, (size_t)n});
}

int mikey_config_find(
	const struct mikey_config *c, struct mikey_party *out, const struct mikey_id *id)
{
	struct str name = {id->name, id->len};
	const struct row *row = find(c, name);

	row = row ? row : find_domain(c, name);
	row = row ? row : find(c, STR("*"));
	if (!row || !id->len)
		return -ENOENT;
	*out = (struct mikey_party){.mine = c->mine,
		.peer = {.id = *id, .psk = row->psk, .cert = row->cert, .trust = c->trust},
		.modes = row->modes,
		.may_initiate = row->may_initiate,
		.may_respond = row->may_respond};
	memcpy(out->mode, row->mode, sizeof(out->mode));
	out->peer.rate = row->has_rate ? row->rate : c->limits.rates.peer;
	/* A peer with the key of this section can use every name that it covers. */
	if (row->name[0] == '*' && (row->psk.len || row->cert))
		(void)mikey_id_from_text(&out->peer.owner, str_from(row->name));
	return 0;
}

const struct mikey_limits *mikey_config_limits(const struct mikey_config *c)
{
	return &c->limits;
}

uint32_t mikey_config_peers(const struct mikey_config *c)
{
	return c->peers;
}
