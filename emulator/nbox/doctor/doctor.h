/* The findings of nbox doctor. Each part looks at one thing and only reports; cmd-doctor.c decides
 * what is printed and the exit code. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_NOTE,  /* missing or odd, and nothing that was asked for needs it */
	DOCTOR_WRONG, /* something that was asked for does not work */
};

struct doctor {
	json_t *findings; /* owned array of {section, name, level, text, ...} */
	unsigned int n_wrong;
	const char *link;   /* shm, tcp or rdma when asked for, else NULL */
	const char *hca;    /* RDMA device when asked for, else NULL */
	const char *device; /* auto, host or cuda */
	bool no_self_test;
	/* found on the way */
	char rdma_address[64]; /* of the device that would be used; "" without one */
	bool is_cuda;
};

/* Adds a finding with a sentence. Return: its object (borrowed), for numbers; NULL
 * without memory. */
json_t *doctor_add(struct doctor *d, enum doctor_level level, const char *section, const char *name,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

void doctor_print(const struct doctor *d); /* for people, on stdout */

/* Each in the file of its name. */
void doctor_programs(struct doctor *d); /* cores, nboxd, libnbox.so, stand-ins, CUDA, NCCL */
void doctor_rdma(struct doctor *d);     /* memlock, providers, devices, ports, GIDs */
void doctor_links(struct doctor *d);    /* each link, measured */
void doctor_reduce(struct doctor *d);   /* one core's sums, measured */
