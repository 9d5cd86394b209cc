/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The node list from a database, by Kamailio's DB API (srdb1): any db_* module that the script has
 * loaded. */
#ifndef MODULE_DB_H
#define MODULE_DB_H

/* The rows as lines of a node list (node.h), for free(). NULL: unavailable; the log has the
 * reason. */
char *db_nodes(void);

#endif
