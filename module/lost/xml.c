/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xml.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <libxml/SAX2.h>
#include <libxml/parser.h>

/* State of one parse, in the context's _private. */
struct guard {
	int elements, namespaces;
	bool refused;
};

static void refuse(xmlParserCtxt *c)
{
	((struct guard *)c->_private)->refused = true;
	xmlStopParser(c);
}

/* Called at "<!DOCTYPE", before any declaration in it is read. */
static void on_doctype(void *ctx, const xmlChar *name, const xmlChar *id, const xmlChar *uri)
{
	(void)name;
	(void)id;
	(void)uri;
	refuse(ctx);
}

static void on_element(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
	int nb_ns, const xmlChar **ns, int nb_attr, int nb_defaulted, const xmlChar **attr)
{
	xmlParserCtxt *c = ctx;
	struct guard *g = c->_private;

	g->namespaces += nb_ns;
	if (g->elements++ >= XML_ELEMENTS_MAX || g->namespaces > XML_NAMESPACES_MAX)
		refuse(c);
	else
		xmlSAX2StartElementNs(
			ctx, name, prefix, uri, nb_ns, ns, nb_attr, nb_defaulted, attr);
}

/* libxml2 compares each attribute with all others of its element before it calls back. So this
 * counts them first: no start tag contains a further '<', and each attribute has a '='. */
static bool has_many_attributes(const char *s, size_t len)
{
	uint32_t n = 0;

	for (size_t i = 0; i < len && n <= XML_ATTRIBUTES_MAX; i++)
		n = s[i] == '<' ? 0 : n + (s[i] == '=');
	return n > XML_ATTRIBUTES_MAX;
}

xmlDoc *xml_read(const char *s, size_t len)
{
	struct guard guard = {0};
	xmlParserCtxt *c;
	xmlDoc *doc;

	if (!s || !len || len > INT_MAX || has_many_attributes(s, len))
		return NULL;
	c = xmlNewParserCtxt();
	if (!c)
		return NULL;
	c->_private = &guard;
	c->sax->internalSubset = on_doctype;
	c->sax->startElementNs = on_element;
	doc = xmlCtxtReadMemory(c, s, (int)len, NULL, "UTF-8",
		XML_PARSE_IGNORE_ENC | XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
			XML_PARSE_NOCDATA | XML_PARSE_COMPACT);
	if (doc && (guard.refused || !c->wellFormed || !xmlDocGetRootElement(doc))) {
		xmlFreeDoc(doc);
		doc = NULL;
	}
	xmlFreeParserCtxt(c);
	return doc;
}

bool xml_is(const xmlNode *n, const char *ns, const char *name)
{
	if (!n || n->type != XML_ELEMENT_NODE || strcmp((const char *)n->name, name))
		return false;
	return !ns || (n->ns && n->ns->href && !strcmp((const char *)n->ns->href, ns));
}

xmlNode *xml_next_element(const xmlNode *n)
{
	xmlNode *i = n ? n->next : NULL;

	while (i && i->type != XML_ELEMENT_NODE)
		i = i->next;
	return i;
}

xmlNode *xml_first_element(const xmlNode *parent)
{
	xmlNode *i = parent ? parent->children : NULL;

	return !i || i->type == XML_ELEMENT_NODE ? i : xml_next_element(i);
}

xmlNode *xml_next(const xmlNode *n, const char *ns, const char *name)
{
	xmlNode *i = xml_next_element(n);

	while (i && !xml_is(i, ns, name))
		i = xml_next_element(i);
	return i;
}

xmlNode *xml_child(const xmlNode *parent, const char *ns, const char *name)
{
	xmlNode *i = xml_first_element(parent);

	return !i || xml_is(i, ns, name) ? i : xml_next(i, ns, name);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Copies libxml2's string without surrounding blanks, and frees it. */
static char *own(xmlChar *x)
{
	const char *s = (const char *)x;
	char *copy = NULL;
	size_t len;

	if (!s)
		return NULL;
	while (is_blank(*s))
		s++;
	len = strlen(s);
	while (len && is_blank(s[len - 1]))
		len--;
	if (len)
		copy = strndup(s, len);
	xmlFree(x);
	return copy;
}

char *xml_text(const xmlNode *n)
{
	return n ? own(xmlNodeGetContent(n)) : NULL;
}

char *xml_attr(const xmlNode *n, const char *name)
{
	return n ? own(xmlGetNoNsProp(n, (const xmlChar *)name)) : NULL;
}

char *xml_dump(xmlNode *n)
{
	xmlDoc *doc = n ? xmlNewDoc((const xmlChar *)"1.0") : NULL;
	xmlNode *copy = doc ? xmlDocCopyNode(n, doc, 1) : NULL;
	xmlBuffer *b = copy ? xmlBufferCreate() : NULL;
	char *s = NULL;

	if (copy)
		xmlDocSetRootElement(doc, copy);
	if (b && xmlNodeDump(b, doc, copy, 0, 0) >= 0)
		s = strdup((const char *)xmlBufferContent(b));
	if (b)
		xmlBufferFree(b);
	if (doc)
		xmlFreeDoc(doc);
	return s;
}
