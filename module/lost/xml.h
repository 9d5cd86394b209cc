/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads XML of strangers with libxml2: without network, DTD, entities of its own, or messages on
 * stderr, which would contain locations. A document with a DOCTYPE is refused. */
#ifndef LOST_XML_H
#define LOST_XML_H

#include <stdbool.h>
#include <stddef.h>

#include <libxml/tree.h>

#define NS_LOST  "urn:ietf:params:xml:ns:lost1"
#define NS_HELD  "urn:ietf:params:xml:ns:geopriv:held"
#define NS_PIDF  "urn:ietf:params:xml:ns:pidf"
#define NS_DM    "urn:ietf:params:xml:ns:pidf:data-model"
#define NS_GP    "urn:ietf:params:xml:ns:pidf:geopriv10"
#define NS_CIVIC "urn:ietf:params:xml:ns:pidf:geopriv10:civicAddr"
#define NS_GML   "http://www.opengis.net/gml"
#define NS_GS    "http://www.opengis.net/pidflo/1.0"

#define XML_ELEMENTS_MAX   200000 /* in one document */
#define XML_NAMESPACES_MAX 4096   /* declarations in one document */
#define XML_ATTRIBUTES_MAX 1024   /* '=' from one '<' to the next */

/* Reads UTF-8, whatever the document says of its encoding. NULL: not well-formed, a DOCTYPE, or too
 * many elements, attributes or namespaces. Free it with xmlFreeDoc(). */
xmlDoc *xml_read(const char *s, size_t len);

bool xml_is(const xmlNode *n, const char *ns, const char *name);
/* The first child, or the next sibling after n, with that name; NULL: none. ns NULL: of any. */
xmlNode *xml_child(const xmlNode *parent, const char *ns, const char *name);
xmlNode *xml_next(const xmlNode *n, const char *ns, const char *name);
xmlNode *xml_first_element(const xmlNode *parent);
xmlNode *xml_next_element(const xmlNode *n);

/* Text and attributes as new strings without surrounding blanks; the caller frees them with free().
 * NULL: there is none, or no memory. */
char *xml_text(const xmlNode *n);
char *xml_attr(const xmlNode *n, const char *name);
/* The element as XML that needs no surrounding declarations. The caller frees it. */
char *xml_dump(xmlNode *n);

#endif
