/* Which table is an NCCL's. */
#include <stdio.h>
#include <string.h>

#include "records.h"
#include "tables.h"

#define N_TABLES (sizeof(tables) / sizeof(*tables))

static const struct nccl_records *const tables[] = {
	&records_2_21_5, &records_2_22_3, &records_2_23_4, &records_2_24_3, &records_2_25_1,
	&records_2_26_2, &records_2_27_3, &records_2_28_3, &records_2_28_7, &records_2_29_2,
	&records_2_29_7, &records_2_30_3, &records_2_30_7,
};

const struct nccl_records *const *nccl_records_all(size_t *ret_n)
{
	*ret_n = N_TABLES;
	return tables;
}

/* "2.28.9"; before 2.9 NCCL counted otherwise. */
static void say_version(int version, char *buf, size_t size)
{
	snprintf(buf, size, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

static void append(char *buf, size_t size, const char *text)
{
	size_t n = strlen(buf);

	snprintf(buf + n, size - n, "%s", text);
}

/* Adds the versions of all tables that were tried, or of all that were not. Return: how many
 * tables. */
static size_t append_tables(char *buf, size_t size, bool is_tried)
{
	size_t n = 0;

	for (size_t i = 0; i < N_TABLES; i++) {
		char first[24], last[24];

		if ((tables[i]->tried != NULL) != is_tried)
			continue;
		say_version(tables[i]->first, first, sizeof(first));
		say_version(tables[i]->last, last, sizeof(last));
		append(buf, size, n++ ? ", " : "");
		append(buf, size, first);
		if (tables[i]->last != tables[i]->first) {
			append(buf, size, " to ");
			append(buf, size, last);
		}
	}
	return n;
}

char *nccl_records_known(char *buf, size_t size)
{
	size_t before;

	buf[0] = '\0';
	if (!append_tables(buf, size, true))
		append(buf, size, "none");
	before = strlen(buf);
	append(buf, size, "; untried: ");
	if (!append_tables(buf, size, false))
		buf[before] = '\0';
	return buf;
}

bool records_are_allowed(const struct nccl_records *r, int version, bool forced, char *sentence,
			 size_t size)
{
	char name[24], known[512];

	if (r && (r->tried || forced))
		return true;
	say_version(version, name, sizeof(name));
	nccl_records_known(known, sizeof(known));
	if (r)
		snprintf(
			sentence, size,
			"NCCL %s: its records are known from its headers, but were never tried against its own code "
			"(tried: %s); --untried takes them",
			name, known);
	else
		snprintf(sentence, size,
			 "NCCL %s: its records are not known (tried: %s); take one of these", name,
			 known);
	return false;
}

const struct nccl_records *nccl_records_find(int version, bool forced, char *sentence, size_t size)
{
	const struct nccl_records *r = NULL;

	for (size_t i = 0; i < N_TABLES; i++)
		if (version >= tables[i]->first && version <= tables[i]->last)
			r = tables[i];
	return records_are_allowed(r, version, forced, sentence, size) ? r : NULL;
}

const struct record_later *nccl_records_later(const struct nccl_records *r, size_t bytes)
{
	for (size_t i = 0; i < RECORD_LATER_MAX && r->later[i].bytes; i++)
		if (r->later[i].bytes == bytes)
			return &r->later[i];
	return NULL;
}
