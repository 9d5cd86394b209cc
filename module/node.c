/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes are chosen by a weighted rendezvous hash over Call-ID and node ids. Every proxy with the
 * same list, and this one after a restart, chooses the same node, and a change of the list moves
 * only the calls of the nodes that changed.
 *
 * A table keeps calls where they are until they end, including calls that failed over, and calls of
 * disabled nodes: 4 entries per row, the oldest is replaced. If an entry is lost, the hash finds
 * the node again, and the reply "unknown call" makes us ask the next one. */
#include "node.h"

#include <arpa/inet.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <core/dprint.h>
#include <core/locking.h>
#include <core/mem/shm.h>

#include "db.h"
#include "settings.h"

#define ROWS     16384u
#define WAYS     4u
#define FILE_MAX 65536

struct placement {
	uint64_t call; /* 0 = free */
	uint64_t node; /* hash of the node's id; 0 = not placed yet */
	uint64_t expires;
	uint64_t emergency; /* hash of an emergency caller's tag; 0 = no emergency call */
};

static struct table {
	gen_lock_t lock;
	int count;
	struct node node[NODES_MAX];
	gen_lock_t row_lock;
	struct placement row[ROWS][WAYS];
} * T; /* shared memory */

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* FNV-1a, then mixed (the finalizer of SplitMix64): a rendezvous hash needs evenly spread bits, not
 * secret ones. */
static uint64_t hash_add(uint64_t h, const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)p[i]) * 0x100000001b3ull;
	return h;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static uint64_t hash_text(struct text t)
{
	uint64_t h = mix(hash_add(0xcbf29ce484222325ull, t.s, t.len));

	return h ? h : 1;
}

static uint64_t hash_id(const char *id)
{
	return hash_text((struct text){id, strlen(id)});
}

int nodes_init(void)
{
	T = shm_malloc(sizeof(*T));
	if (!T)
		return -1;
	memset(T, 0, sizeof(*T));
	return lock_init(&T->lock) && lock_init(&T->row_lock) ? 0 : -1;
}

void nodes_destroy(void)
{
	if (T)
		shm_free(T);
	T = NULL;
}

/* --- The list ------------------------------------------------------------------------------- */

static int node_parse(struct node *n, char *word, uint32_t set)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
	char host[NODE_ID_LEN], *port, *end = NULL, *eq = strrchr(word, '='), *h = host;
	int err;

	*n = (struct node){.weight = 1, .set = set, .listed = true, .enabled = true};
	if (eq) {
		*eq = 0;
		n->weight = (uint32_t)strtoul(eq + 1, &end, 10);
		if (!eq[1] || *end || eq[1] == '-')
			return -1;
	}
	if (strncmp(word, "udp:", 4) || strlen(word) >= sizeof(n->id) || n->weight > 1000000)
		return -1;
	strcpy(n->id, word);
	strcpy(host, word + 4);
	port = strrchr(host, ':');
	if (!port || port == host)
		return -1;
	*port++ = 0;
	if (strtoul(port, &end, 10) - 1 >= 65535 || *end)
		return -1;
	if (h[0] == '[' && h[strlen(h) - 1] == ']') {
		h[strlen(h) - 1] = 0;
		h++;
	}
	err = getaddrinfo(h, port, &hints, &found);
	if (err) {
		LM_ERR("node %s: %s\n", n->id, gai_strerror(err));
		return -1;
	}
	memcpy(&n->addr, found->ai_addr, found->ai_addrlen);
	n->addr_len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

static struct node *node_find(struct node *list, int count, const char *id)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(list[i].id, id))
			return &list[i];
	return NULL;
}

/* One line: "set N == nodes" or nodes. Updates *set. */
static int line_parse(struct node *list, int *count, char *line, uint32_t *set)
{
	char *save = NULL, *w = strtok_r(line, " \t\r", &save);
	struct node *last = NULL;

	while (w && *w != '#') {
		unsigned number;

		if (!strcmp(w, "set")) {
			w = strtok_r(NULL, " \t\r", &save);
			if (!w || sscanf(w, "%u", &number) != 1)
				return -1;
			*set = number;
			w = strtok_r(NULL, " \t\r", &save);
			if (!w || strcmp(w, "=="))
				return -1;
		} else if (!strcmp(w, "disabled") && last) {
			last->listed = last->enabled = false;
		} else if (*count == NODES_MAX || node_parse(&list[*count], w, *set)) {
			LM_ERR("\"%s\" is no node (udp:host:port or udp:host:port=weight), or one too many\n",
				w);
			return -1;
		} else {
			last = node_find(list, *count, list[*count].id);
			if (!last)
				last = &list[(*count)++];
		}
		w = strtok_r(NULL, " \t\r", &save);
	}
	return 0;
}

/* A known node keeps its state. */
static void install(const struct node *list, int count, bool replace)
{
	struct node *old;
	struct node merged[NODES_MAX];
	int n = 0;

	lock_get(&T->lock);
	if (!replace) {
		n = T->count;
		memcpy(merged, T->node, (size_t)n * sizeof(*merged));
	}
	for (int i = 0; i < count && n < NODES_MAX; i++) {
		if (node_find(merged, n, list[i].id))
			continue;
		merged[n] = list[i];
		old = node_find(T->node, T->count, list[i].id);
		if (old) {
			merged[n] = *old;
			merged[n].weight = list[i].weight;
			merged[n].set = list[i].set;
			merged[n].addr = list[i].addr;
			merged[n].addr_len = list[i].addr_len;
			if (old->listed != list[i].listed)
				merged[n].enabled = list[i].enabled;
			merged[n].listed = list[i].listed;
		}
		n++;
	}
	memcpy(T->node, merged, (size_t)n * sizeof(*merged));
	T->count = n;
	lock_release(&T->lock);
}

int nodes_load(const char *text, uint32_t set, bool replace)
{
	struct node *list = calloc(NODES_MAX, sizeof(*list));
	char *copy = strdup(text), *save = NULL;
	int count = 0, err = list && copy ? 0 : -1;

	for (char *line = err ? NULL : strtok_r(copy, "\n;", &save); line && !err;
		line = strtok_r(NULL, "\n;", &save))
		err = line_parse(list, &count, line, &set);
	if (!err)
		install(list, count, replace);
	free(copy);
	free(list);
	return err ? -1 : count;
}

static char *read_file(const char *path)
{
	char *text = calloc(1, FILE_MAX + 1);
	FILE *f = fopen(path, "r");

	if (!f || !text || fread(text, 1, FILE_MAX + 1, f) > FILE_MAX) {
		LM_ERR("cannot read the node list %s\n", path);
		free(text);
		text = NULL;
	}
	if (f)
		fclose(f);
	return text;
}

/* Appends text to *all, in set 0 unless it names another. Takes ownership of the text. */
static int append(char **all, char *text)
{
	static const char between[] = "\nset 0 ==\n";
	size_t n = *all ? strlen(*all) : 0;
	char *longer = text ? realloc(*all, n + sizeof(between) + strlen(text)) : NULL;

	if (longer) {
		strcpy(longer + n, between);
		strcat(longer + n, text);
		*all = longer;
	}
	free(text);
	return longer ? 0 : -1;
}

int nodes_load_all(bool replace)
{
	char *all = NULL;
	int err = 0, n = -1;

	if (settings.nodes_file)
		err = append(&all, read_file(settings.nodes_file));
	if (!err && settings.db_url)
		err = append(&all, db_nodes());
	for (int i = 0; !err && i < settings.node_lines; i++)
		err = append(&all, strdup(settings.node_line[i]));
	if (!err)
		n = all ? nodes_load(all, 0, replace) : 0;
	free(all);
	return n;
}

/* --- Placements ------------------------------------------------------------------------------ */

static struct placement *placement_find(uint64_t call)
{
	struct placement *e = T->row[call % ROWS];

	for (uint32_t i = 0; i < WAYS; i++)
		if (e[i].call == call && e[i].expires > now_ms())
			return &e[i];
	return NULL;
}

/* A free entry, else the oldest of its row. */
static struct placement *placement_make(uint64_t call)
{
	struct placement *found = placement_find(call), *e = T->row[call % ROWS];

	if (!found) {
		found = e;
		for (uint32_t i = 1; i < WAYS && found->call; i++)
			if (!e[i].call || e[i].expires < found->expires)
				found = &e[i];
		*found = (struct placement){.call = call};
	}
	found->expires = now_ms() + (uint64_t)settings.affinity_timeout * 1000;
	return found;
}

static struct placement placement_get(struct text call_id)
{
	struct placement copy = {0}, *e;

	lock_get(&T->row_lock);
	e = placement_find(hash_text(call_id));
	if (e)
		copy = *e;
	lock_release(&T->row_lock);
	return copy;
}

void nodes_mark_emergency(struct text call_id, struct text tag, bool on)
{
	lock_get(&T->row_lock);
	placement_make(hash_text(call_id))->emergency = on ? hash_text(tag) : 0;
	lock_release(&T->row_lock);
}

bool nodes_is_emergency(struct text call_id, struct text tag, struct text other_tag)
{
	uint64_t of = placement_get(call_id).emergency;

	return of && (of == hash_text(tag) || of == hash_text(other_tag));
}

void nodes_forget(struct text call_id)
{
	struct placement *e;

	lock_get(&T->row_lock);
	e = placement_find(hash_text(call_id));
	if (e)
		e->call = 0;
	lock_release(&T->row_lock);
}

/* --- The choice ------------------------------------------------------------------------------- */

/* Weighted rendezvous: the smallest -ln(u) / weight wins, with u uniform in (0,1). */
static double score(uint64_t call, const struct node *n)
{
	double u = ((double)(mix(call ^ hash_id(n->id)) >> 11) + 0.5) / 9007199254740992.0;

	return -log(u) / n->weight;
}

struct candidate {
	double score;
	const struct node *n;
};

static int by_score(const void *a, const void *b)
{
	double x = ((const struct candidate *)a)->score, y = ((const struct candidate *)b)->score;

	return (x > y) - (x < y);
}

int nodes_choose(struct target *out, int max, struct text call_id, uint32_t set, bool all)
{
	struct placement e = placement_get(call_id);
	struct candidate c[NODES_MAX] = {0};
	uint64_t call = hash_text(call_id), now = now_ms();
	int n = 0, count = 0;

	lock_get(&T->lock);
	for (int i = 0; i < T->count; i++) {
		const struct node *d = &T->node[i];

		/* The call's own node is used, whatever set the script selects now. */
		if (hash_id(d->id) != e.node && (d->set != set || !d->weight || !d->enabled))
			continue;
		c[n].n = d;
		c[n].score = hash_id(d->id) == e.node ? -1 : score(call, d);
		/* Nodes that are down come last; ordinary calls skip them. */
		if (d->down_until > now) {
			if (!all)
				continue;
			c[n].score += 1e9;
		}
		n++;
	}
	qsort(c, (size_t)n, sizeof(*c), by_score);
	for (; count < n && count < max; count++) {
		strcpy(out[count].id, c[count].n->id);
		out[count].addr = c[count].n->addr;
		out[count].addr_len = c[count].n->addr_len;
	}
	lock_release(&T->lock);
	return count;
}

void nodes_placed(struct text call_id, const char *id)
{
	lock_get(&T->row_lock);
	placement_make(hash_text(call_id))->node = hash_id(id);
	lock_release(&T->row_lock);
}

/* --- Events ---------------------------------------------------------------------------------- */

static void note(struct node *n, enum node_event e, bool *went, bool *came)
{
	bool down = n->down_until > now_ms();

	switch (e) {
	case NODE_SENT:
		n->sent++;
		return;
	case NODE_TIMEOUT:
	case NODE_UNREACHABLE:
		n->timeouts++;
		n->down_until = now_ms() + (uint64_t)settings.down_time * 1000;
		*went = !down;
		return;
	case NODE_REFUSED:
		n->refused++;
		break;
	case NODE_LOAD_LIMIT:
		n->load_limit++;
		break;
	case NODE_ANSWERED:
		break;
	}
	n->answered++;
	*came = n->down_until != 0;
	n->down_until = 0;
}

void nodes_note(const char *id, enum node_event e)
{
	bool went = false, came = false;
	struct node *n;

	lock_get(&T->lock);
	n = node_find(T->node, T->count, id);
	if (n)
		note(n, e, &went, &came);
	lock_release(&T->lock);
	if (went)
		LM_WARN("node %s %s: down\n", id,
			e == NODE_TIMEOUT ? "does not answer" : "is unreachable");
	if (came)
		LM_NOTICE("node %s answers again: up\n", id);
}

bool nodes_same_address(const struct target *t, const struct sockaddr_storage *a)
{
	const struct sockaddr_in *x4 = (const void *)&t->addr, *y4 = (const void *)a;
	const struct sockaddr_in6 *x6 = (const void *)&t->addr, *y6 = (const void *)a;

	if (t->addr.ss_family != a->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return x4->sin_port == y4->sin_port && x4->sin_addr.s_addr == y4->sin_addr.s_addr;
	return x6->sin6_port == y6->sin6_port && !memcmp(&x6->sin6_addr, &y6->sin6_addr, 16);
}

bool nodes_enable(struct text id, bool on)
{
	bool found = false;

	lock_get(&T->lock);
	for (int i = 0; i < T->count; i++)
		if (text_is(id, "all") || text_is(id, T->node[i].id)) {
			T->node[i].enabled = on;
			if (on)
				T->node[i].down_until = 0;
			found = true;
		}
	lock_release(&T->lock);
	return found;
}

int nodes_copy(struct node *out, int max)
{
	int n;

	lock_get(&T->lock);
	n = T->count < max ? T->count : max;
	memcpy(out, T->node, (size_t)n * sizeof(*out));
	lock_release(&T->lock);
	return n;
}
