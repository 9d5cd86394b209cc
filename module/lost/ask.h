/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A question of a script's function. It travels from the SIP worker to the client process as one
 * block of shared memory. */
#ifndef LOST_ASK_H
#define LOST_ASK_H

#include "message.h"

#define SOURCES_MAX 8

enum ask_op {
	ASK_FIND,
	ASK_LIST,
	ASK_BOUNDARY,
	ASK_HELD,       /* locationRequest to a LIS */
	ASK_DEREFERENCE /* only fetches a location */
};

/* X(id): how a location came; the text of $xlost(method) */
#define METHODS(X) X(cid) X(reference) X(argument)

enum method {
#define X(id) METHOD_##id,
	METHODS(X)
#undef X
};
extern const char *const METHOD_NAMES[];

/* A location, or a reference to one. */
struct source {
	bool reference; /* place.xml is a URI */
	enum method method;
	struct place place;
};

struct ask {
	enum ask_op op;
	char *service;  /* "": none */
	char *argument; /* key, identity, or URI */
	struct source source[SOURCES_MAX];
	int sources;
	int first_server; /* ASK_BOUNDARY: index of the server that knows the key */
};

/* Appends the locations of a PIDF-LO; the number of them. */
int ask_add_pidf(struct ask *a, const char *s, size_t len, enum method method, enum profile prefer);
/* Appends a reference. False: no room, or out of memory. */
bool ask_add_reference(struct ask *a, const char *uri, size_t len);
/* Frees the texts of an ask that is not flat. */
void ask_clear(struct ask *a);

size_t ask_flat_size(const struct ask *a);
struct ask *ask_flatten(const struct ask *a, void *block);

#endif
