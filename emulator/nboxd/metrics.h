/* nboxd's figures for Prometheus: http://HOST:PORT/metrics, where --metrics asks for it. An address
 * that other hosts can reach wants the token: "Authorization: Bearer TOKEN". */
#pragma once

#include "base/err.h"

struct metrics;
struct server;

/* Return: 0; negative errno with the sentence. */
int metrics_open(struct server *s, struct metrics **ret, struct err *err);
void metrics_close(struct metrics *m); /* NULL allowed */
/* HOST:PORT where it listens; NULL: @m is. */
const char *metrics_addr(const struct metrics *m);
