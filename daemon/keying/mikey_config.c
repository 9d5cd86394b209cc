/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the file of identities, and finds peers in it. Keys are never logged: complaints name files
 * and sections. */
#include "keying/mikey_config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ini.h"
#include "base/secmem.h"
#include "base/secret_file.h"

#define FILE_MAX  (1u << 20) /* certificates, revocation lists */
#define ROWS      32u        /* peers of a block of secure memory */
#define SKEW_MAX  86400u
#define PATH_SIZE 1024u

struct row {
	char name[MIKEY_ID_MAX + 1];
	struct mikey_psk psk;
	struct mikey_cert *cert;
	uint8_t mode[MIKEY_MODE_COUNT];
	uint32_t modes;
	bool may_initiate, may_respond;
};

struct block {
	struct block *next;
	uint32_t n;
	struct row row[ROWS];
};

struct mikey_config {
	struct mikey_identity mine;
	struct mikey_trust *trust;
	struct mikey_limits limits;
	struct block *blocks;
	uint32_t peers;
};

struct reading {
	struct mikey_config *c;
	const char *path;
	char roots[PATH_SIZE], crl[PATH_SIZE];
	struct row *row; /* of the section */
	char *err;
	size_t err_len;
};

static bool complain(struct reading *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool complain(struct reading *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->err, r->err_len, fmt, ap);
	va_end(ap);
	return false;
}

int mikey_id_from_text(struct mikey_id *out, struct str text)
{
	bool uri = text.len && memchr(text.s, ':', text.len);

	if (!text.len)
		return -EINVAL;
	return mikey_id_set(out, uri ? MIKEY_ID_URI : MIKEY_ID_NAI, text);
}

/* --- Files ------------------------------------------------------------------------------------ */

/* Relative names are relative to the folder of the ini file. */
static bool place(struct reading *r, char out[PATH_SIZE], const char *name)
{
	const char *slash = strrchr(r->path, '/');
	int dir = *name != '/' && slash ? (int)(slash - r->path) + 1 : 0;
	int n = snprintf(out, PATH_SIZE, "%.*s%s", dir, r->path, name);

	return (n > 0 && n < (int)PATH_SIZE) || complain(r, "--mikey-config: path too long");
}

/* A file without secrets, whole. *text is on the heap. */
static bool read_open(struct reading *r, const char *path, struct str *text)
{
	FILE *f = fopen(path, "re");
	char *buf = f ? malloc(FILE_MAX) : NULL;
	size_t n = buf ? fread(buf, 1, FILE_MAX, f) : 0;
	bool whole = buf && n < FILE_MAX && !ferror(f);

	if (f)
		fclose(f);
	*text = (struct str){buf, n};
	if (!whole) {
		free(buf);
		*text = STR_NONE;
		return complain(
			r, "--mikey-config: cannot read %s, or it is longer than 1 MiB", path);
	}
	return true;
}

static bool load_cert(struct reading *r, struct mikey_cert **out, const char *name, bool key)
{
	char path[PATH_SIZE], *text;
	int n, err;

	if (!place(r, path, name))
		return false;
	text = secmem_alloc(FILE_MAX);
	if (!text)
		return complain(r, "out of memory");
	if (key) {
		n = secret_file_read(
			"--mikey-config: certificate", path, text, FILE_MAX, r->err, r->err_len);
	} else {
		struct str open;

		n = read_open(r, path, &open) ? (int)open.len : -EIO;
		if (n > 0)
			memcpy(text, open.s, open.len);
		free((char *)(uintptr_t)open.s);
	}
	if (n < 0) {
		secmem_free(text, FILE_MAX);
		return false;
	}
	mikey_cert_put(*out);
	*out = NULL;
	err = mikey_cert_load(out, (struct str){text, (size_t)n}, key);
	secmem_free(text, FILE_MAX);
	if (err == -EKEYREJECTED)
		return complain(r,
			"--mikey-config: %s: needs RSA of 2,048 bits or more, and a key that fits",
			path);
	return !err ||
		complain(r, "--mikey-config: %s: no usable PEM certificate%s", path,
			key ? " with its private key" : "");
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'    ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;
}

/* The first line: text, or hex digits after "0x". */
static bool psk_from(struct mikey_psk *out, struct str line)
{
	size_t len = line.len;

	if (!str_starts(line, STR("0x"))) {
		if (len < MIKEY_PSK_MIN || len > MIKEY_PSK_MAX)
			return false;
		memcpy(out->key, line.s, len);
		out->len = (uint8_t)len;
		return true;
	}
	if (len % 2 || len / 2 - 1 < MIKEY_PSK_MIN || len / 2 - 1 > MIKEY_PSK_MAX)
		return false;
	for (size_t i = 2; i < len; i += 2) {
		int high = hex_digit(line.s[i]), low = hex_digit(line.s[i + 1]);

		if (high < 0 || low < 0)
			return false;
		out->key[i / 2 - 1] = (uint8_t)(high << 4 | low);
	}
	out->len = (uint8_t)(len / 2 - 1);
	return true;
}

static bool load_psk(struct reading *r, struct mikey_psk *out, const char *name)
{
	char path[PATH_SIZE], text[512];
	int n;
	bool good;

	if (!place(r, path, name))
		return false;
	n = secret_file_read(
		"--mikey-config: psk-file", path, text, sizeof(text), r->err, r->err_len);
	if (n < 0)
		return false;
	good = psk_from(out, secret_file_line(text, (size_t)n));
	secmem_wipe(text, sizeof(text));
	return good ||
		complain(r, "--mikey-config: %s: needs 16 to 64 characters, or hex after 0x", path);
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

static bool peer_entry(struct reading *r, const char *name, const char *value)
{
	if (strcmp(name, "psk-file") == 0)
		return load_psk(r, &r->row->psk, value);
	if (strcmp(name, "certificate") == 0)
		return load_cert(r, &r->row->cert, value, false);
	if (strcmp(name, "modes") == 0)
		return set_modes(r->row, value) ||
			complain(r, "--mikey-config: modes are psk, pke, dh, dhhmac, rsa-r");
	if (strcmp(name, "may") == 0)
		return set_may(r->row, value) ||
			complain(r, "--mikey-config: may is initiate, respond, or both");
	return complain(r, "--mikey-config: %s is not a name of a [peer] section", name);
}

static bool set_flag(struct reading *r, bool *flag, const char *name, const char *value)
{
	*flag = strcmp(value, "yes") == 0;
	return *flag || strcmp(value, "no") == 0 ||
		complain(r, "--mikey-config: %s is yes or no", name);
}

static bool self_entry(struct reading *r, const char *name, const char *value)
{
	struct mikey_config *c = r->c;
	uint64_t n;

	if (strcmp(name, "identity") == 0)
		return mikey_id_from_text(&c->mine.id, str_from(value)) == 0 ||
			complain(r, "--mikey-config: identity has 1 to 255 characters");
	if (strcmp(name, "certificate") == 0)
		return load_cert(r, &c->mine.cert, value, true);
	if (strcmp(name, "roots") == 0)
		return place(r, r->roots, value);
	if (strcmp(name, "crl") == 0)
		return place(r, r->crl, value);
	if (strcmp(name, "weak-dh") == 0)
		return set_flag(r, &c->limits.weak_dh, name, value);
	if (strcmp(name, "null-encryption") == 0)
		return set_flag(r, &c->limits.null_key_encryption, name, value);
	if (strcmp(name, "skew") == 0) {
		bool good = str_to_u64(&n, str_from(value), SKEW_MAX) == 0 && n;

		c->limits.skew_s = good ? (uint32_t)n : 0;
		return good || complain(r, "--mikey-config: skew is 1 to 86400 seconds");
	}
	return complain(r, "--mikey-config: %s is not a name of section [self]", name);
}

static bool entry(void *arg, const char *section, const char *name, const char *value)
{
	struct reading *r = arg;

	if (strcmp(section, "self") == 0)
		return self_entry(r, name, value);
	if (strncmp(section, "peer ", 5) != 0)
		return complain(r, "--mikey-config: sections are [self] and [peer IDENTITY]");
	if ((!r->row || strcmp(r->row->name, section + 5) != 0) && !row_add(r, section + 5))
		return complain(r, "--mikey-config: more than 4096 peers, or a name is too long");
	return peer_entry(r, name, value);
}

/* --- The whole file --------------------------------------------------------------------------- */

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
		return !r->crl[0] || complain(r, "--mikey-config: crl needs roots");
	if (!read_open(r, r->roots, &roots))
		return false;
	if (r->crl[0] && !read_open(r, r->crl, &crl)) {
		free((char *)(uintptr_t)roots.s);
		return false;
	}
	err = mikey_trust_load(&r->c->trust, roots, crl);
	free((char *)(uintptr_t)roots.s);
	free((char *)(uintptr_t)crl.s);
	return !err || complain(r, "--mikey-config: roots or crl: not PEM");
}

int mikey_config_load(struct mikey_config **out, const char *path, char *err, size_t err_len)
{
	struct reading r = {
		.c = calloc(1, sizeof(*r.c)), .path = path, .err = err, .err_len = err_len};
	int line;

	if (!r.c) {
		complain(&r, "out of memory");
		return -ENOMEM;
	}
	err[0] = 0;
	r.c->limits.skew_s = MIKEY_SKEW_S;
	line = ini_read(path, entry, &r);
	if (line && !err[0])
		complain(&r, "--mikey-config: %s: %s", path,
			line < 0 ? strerror(-line) : "syntax error");
	if (!line && !r.c->mine.id.len)
		complain(&r, "--mikey-config: %s: set identity in section [self]", path);
	if (err[0] || !load_trust(&r)) {
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
			mikey_cert_put(b->row[i].cert);
		secmem_free(b, sizeof(*b));
	}
	mikey_cert_put(c->mine.cert);
	mikey_trust_put(c->trust);
	free(c);
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
