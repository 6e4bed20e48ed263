/* The answer to WIRE_STATUS: nboxd as JSON. Bounded: of many communicators or workers the first are
 * listed, the counts are whole. */
#pragma once

struct server;

/* The caller's to free(). NULL: no memory. */
char *status_json(const struct server *s);
