# SPDX-License-Identifier: GPL-2.0-or-later
"""A LoST server (RFC 5222): maps locations and services to URIs.

main       options and subcommands
web        HTTP and HTTPS, bounded in size and time
resolver   one request in, one response out
messages   requests as objects, responses as text
shapes     location shapes of RFC 5491 as polygons
civic      civic addresses against a table
index      boundaries in memory, in front of the storage
storage    PostGIS and SpatiaLite behind one interface
geojson    the loader's format
dataset    makes the data of a study"""
