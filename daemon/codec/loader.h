/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the plug-ins of a folder, tests each in a process of its own, and adds their codecs to the
 * registry. */
#ifndef CODEC_LOADER_H
#define CODEC_LOADER_H

#include "codec/registry.h"

struct codec_loader_cfg {
	const char *folder;
	bool ours; /* the folder that our packages install to */
	enum codec_isolation isolation;
	struct codec_home_cfg home; /* program; plugin is ignored */
};

/* Loads FOLDER/NAME.so in the order of their names. Plug-ins that are refused are listed with one
 * reason each, and the others are loaded. Returns how many were loaded, or -errno if the folder
 * cannot be used: -ENOENT, or -EPERM if others may write to it. */
int codec_loader_run(struct codec_registry *r, const struct codec_loader_cfg *cfg);

#endif
