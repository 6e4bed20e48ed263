/* What processes of the job tell of it (WIRE_JOB): the NCCL that they have loaded, and NCCL's
 * variables. A scheduler decides by the first one's. */
#pragma once

struct server;
struct worker;
struct wire_hdr;

/* The frame @h of @w with its checked body. A process that comes when no other one is there begins
 * another job: a script may run several. One that tells otherwise than those that are there gets a
 * line in the summary. Return: as worker_refuse(). */
int told_on_job(struct server *s, struct worker *w, const struct wire_hdr *h, const void *body);
/* A line for the summary: what ops were decided by since it was called last. */
void told_note_decided(struct server *s);
