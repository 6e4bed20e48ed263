/* See points.h. The values of an option that differs, such as "add:op=allreduce,delay=5ms" and
 * "add:op=allreduce,delay=10ms", are alike up to a number and behind it; a run without the option
 * is the one that does nothing of it: 0, or 1 where the number is a factor. */
#include "nbox/page/points.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "config/config.h"

static void option_text(const struct config *c, int id, char *buf, size_t size)
{
	const struct config_value *v = &c->values[id];
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < v->n_items && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? "; " : "",
					 v->items[i].text);
}

static bool is_of_place(int id) /* it says where a run is, not what */
{
	return id == CONFIG_OUT || id == CONFIG_ADDR || id == CONFIG_TOKEN || id == CONFIG_STORE ||
	       id == CONFIG_LOG;
}

static bool differs(const struct compare_side *sides, size_t n, int id)
{
	char first[128], other[128];

	if (is_of_place(id) || !sides[0].config)
		return false;
	option_text(sides[0].config, id, first, sizeof(first));
	for (size_t i = 1; i < n; i++) {
		if (!sides[i].config)
			return false;
		option_text(sides[i].config, id, other, sizeof(other));
		if (strcmp(first, other))
			return true;
	}
	return false;
}

/* How many bytes all texts that are not empty have in common at their beginning, up to a number. */
static size_t common_head(const char (*texts)[128], size_t n)
{
	const char *first = NULL;
	size_t head = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		if (!texts[i][0])
			continue;
		if (!first) {
			first = texts[i];
			head = strlen(first);
			continue;
		}
		while (k < head && texts[i][k] == first[k])
			k++;
		head = k;
	}
	if (first && !first[head]) /* all are alike: what differs is that some have it */
		while (head && !isdigit((unsigned char)first[head - 1]))
			head--;
	while (first && head && (isdigit((unsigned char)first[head - 1]) || first[head - 1] == '.'))
		head--;
	return head;
}

/* A number with its unit at the beginning of @text. *ret_unit: 't' ms, 'b' Gbit/s, 'B' bytes,
 * '1' none. Return: the bytes of both; 0: there is none. */
static size_t read_number(const char *text, double *ret, char *ret_unit)
{
	char word[64];
	size_t n = strspn(text, "0123456789."), all;
	uint64_t bytes;
	double value;

	all = n + strcspn(text + n, ",;: +");
	if (n == 0 || all >= sizeof(word))
		return 0;
	snprintf(word, sizeof(word), "%.*s", (int)all, text);
	if (all == n && units_ratio(word, &value, NULL) == 0)
		*ret = value, *ret_unit = '1';
	else if (units_time(word, &value, NULL) == 0)
		*ret = value / 1e6, *ret_unit = 't';
	else if (units_bandwidth(word, &value, NULL) == 0)
		*ret = value * 8, *ret_unit = 'b';
	else if (units_bytes(word, &bytes, NULL) == 0)
		*ret = (double)bytes, *ret_unit = 'B';
	else
		return 0;
	return all;
}

/* Where the word "delay=" begins that ends at @head. */
static size_t key_of(const char *text, size_t head)
{
	size_t at = head;

	while (at && !strchr(",: ;", text[at - 1]))
		at--;
	return at;
}

/* Return: the texts are numbers but for what they share; @points have them then. */
static bool find_numbers(const char (*texts)[128], size_t n, const char *option, struct points *p)
{
	size_t head = common_head(texts, n);
	const char *tail = NULL, *first = NULL;
	char unit = 0, own;

	for (size_t i = 0; i < n; i++) {
		size_t used = texts[i][0] ? read_number(texts[i] + head, &p->list[i].x, &own) : 0;

		if (!texts[i][0])
			continue;
		if (used == 0 || (unit && unit != own) ||
		    (tail && strcmp(tail, texts[i] + head + used) != 0))
			return false;
		tail = texts[i] + head + used;
		first = first ? first : texts[i];
		unit = own;
	}
	for (size_t i = 0; i < n; i++)
		if (!texts[i][0])
			p->list[i].x = unit == '1' ? 1 : 0;
	for (size_t i = 0; i < n; i++) /* what they share stands at the axis */
		snprintf(p->settings[i], sizeof(p->settings[i]), "%s",
			 texts[i][0] ? texts[i] + key_of(texts[i], head) : "none");
	while (first && head && strchr("=:", first[head - 1]))
		head--;
	snprintf(p->axis, sizeof(p->axis), "%s%s%.*s%s", option, head ? " " : "", (int)head,
		 first ? first : "",
		 unit == 't'   ? " (ms)"
		 : unit == 'b' ? " (Gbit/s)"
		 : unit == 'B' ? " (bytes)"
			       : "");
	return first != NULL;
}

static struct page_point point_of(const struct compare_side *s, const char *setting)
{
	const struct report *r = &s->rep;
	bool has_steps = r->n_steps != 0;

	return (struct page_point){.setting = setting,
				   .run = s->dir,
				   .x = NAN,
				   .ms = has_steps ? r->step_ns.p50 / 1e6 : NAN,
				   .low_ms = has_steps ? r->step_ns.p25 / 1e6 : NAN,
				   .high_ms = has_steps ? r->step_ns.p75 / 1e6 : NAN,
				   .exposed_ms = r->exposed_ns / 1e6,
				   .injected_ms = r->injected_ns / 1e6,
				   .modelled_ms = r->modelled_ns / 1e6,
				   .n_warnings = r->n_warnings};
}

/* To the settings in words; @texts: the values alone. */
static void add_option(const struct compare_side *sides, size_t n, int id, char (*texts)[128],
		       struct points *p)
{
	for (size_t i = 0; i < n; i++) {
		size_t used = strlen(p->settings[i]);

		option_text(sides[i].config, id, texts[i], sizeof(texts[i]));
		snprintf(p->settings[i] + used, sizeof(p->settings[i]) - used, "%s%s %s",
			 used ? ", " : "", options[id].name, texts[i][0] ? texts[i] : "none");
	}
}

int points_make(const struct compare_side *sides, size_t n, struct points *ret)
{
	struct points p = {.list = calloc(n, sizeof(*p.list)),
			   .settings = calloc(n, sizeof(*p.settings))};
	CLEANUP(freep) char(*texts)[128] = calloc(n, sizeof(*texts));
	int n_varied = 0, varied = 0;

	if (!p.list || !p.settings || !texts) {
		points_deinit(&p);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		p.list[i] = point_of(&sides[i], p.settings[i]);
	for (int id = 0; id < CONFIG_OPTIONS; id++)
		if (differs(sides, n, id)) {
			n_varied++;
			varied = id;
			add_option(sides, n, id, texts, &p);
		}
	if (n_varied == 1)
		find_numbers((const char(*)[128])texts, n, options[varied].name, &p);
	for (size_t i = 0; n_varied == 0 && i < n; i++)
		snprintf(p.settings[i], sizeof(p.settings[i]), "%.120s", sides[i].dir);
	*ret = p;
	return 0;
}

void points_deinit(struct points *p)
{
	free(p->list);
	free(p->settings);
}
