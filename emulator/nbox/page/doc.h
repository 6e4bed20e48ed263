/* A document, written once and in two forms: a page of HTML that needs no other file and no
 * network, and Markdown without the pictures. All text is escaped. The page reads well on a phone,
 * on a dark screen and on paper; what is too wide scrolls in a box of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "nbox/draw/lanes.h"

enum doc_form { DOC_HTML, DOC_MD };

struct doc {
	FILE *to;
	enum doc_form form;
	const char *align; /* of the table that is being written */
};

/* @key: the place of the figure in summary.json, such as "steps.ms.p50", with its exact value;
 * NULL: a text. */
struct doc_cell {
	const char *text;
	const char *key;
	double value;
};

/* Of @ns, as milliseconds; @buf lives as long as the cell. */
struct doc_cell doc_ms(double ns, const char *key, char *buf, size_t size);

void doc_begin(struct doc *d, const char *title);
void doc_end(struct doc *d);
void doc_heading(struct doc *d, const char *text);
void doc_text(struct doc *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void doc_code(struct doc *d, const char *text); /* a command line */

/* Large figures. */
struct doc_card {
	const char *name, *note;
	enum svg_role role; /* it colours */
	struct doc_cell value;
};
void doc_cards(struct doc *d, const struct doc_card *cards, size_t n);

/* A list with a mark that says: look here. */
void doc_warnings(struct doc *d, const char *const *texts, size_t n);

/* @align: a letter a column: l or r. */
void doc_table_begin(struct doc *d, const char *align, const char *const *heads);
void doc_row(struct doc *d, const struct doc_cell *cells);
void doc_table_end(struct doc *d);

/* Return: a picture may be drawn to d->to, up to doc_picture_end(). @is_wide: it has the page's
 * width, and scrolls on a narrow screen. */
bool doc_picture_begin(struct doc *d, const char *caption, bool is_wide);
void doc_picture_end(struct doc *d);
/* What colours of the next picture stand for; they wrap on a narrow screen. */
void doc_keys(struct doc *d, const struct lane_key *keys, size_t n);
/* Pictures between these stand beside each other where there is room. */
void doc_grid_begin(struct doc *d);
void doc_grid_end(struct doc *d);

/* JSON for programs, in the page. @json: what jansson printed. */
void doc_json(struct doc *d, const char *id, const char *json);
