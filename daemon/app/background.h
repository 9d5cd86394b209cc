/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moves the daemon to the background, and reports to the caller whether the start succeeded. Writes
 * the file with the process id. */
#ifndef APP_BACKGROUND_H
#define APP_BACKGROUND_H

/* Forks. The parent waits until background_ready() (exit status 0), or until the child dies (1).
 * The child returns with a descriptor for background_ready(), or -errno. */
int background_start(void);
void background_ready(int handle);

/* 0 or -errno. An existing file is overwritten: it may be left from a killed instance. */
int pidfile_write(const char *path);

#endif
