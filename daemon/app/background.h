/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts the daemon into the background such that the caller learns whether the start succeeded.
 * Writes the file with the process id. */
#ifndef APP_BACKGROUND_H
#define APP_BACKGROUND_H

/* Forks. The parent waits until background_ready() (exit status 0) or until the child dies (1); the
 * child returns with a handle to say so, or -errno. */
int background_start(void);
void background_ready(int handle);

/* 0 or -errno. An existing file is overwritten: it may be left from a killed instance. */
int pidfile_write(const char *path);

#endif
