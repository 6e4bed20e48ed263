/* See doc.h. */
#include "nbox/page/doc.h"

#include <stdarg.h>
#include <string.h>

#include "base/plain.h"
#include "nbox/draw/svg.h"

static const char style[] =
	":root{color-scheme:light dark;--ink:#1a1f26;--soft:#525b66;--paper:#fff;--box:#f4f6f8;--edge:#d5dae0;--bad:#c00000}\n"
	"@media screen and (prefers-color-scheme:dark){:root{--ink:#e8ebef;--soft:#a9b3be;--paper:#14181d;--box:#1d232a;"
	"--edge:#3a434d;--bad:#ff7b72}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;padding:1.2rem 1rem 3rem;max-width:66rem;background:var(--paper);color:var(--ink);"
	"font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif;overflow-wrap:break-word}\n"
	"h1{font-size:1.5rem;line-height:1.25;margin:.4rem 0 .6rem}h2{font-size:1.15rem;margin:2.2rem 0 .5rem}\n"
	"p{margin:.5rem 0;max-width:46rem}.lead{font-size:1.1rem}\n"
	"code{font:.85em/1.5 ui-monospace,\"DejaVu Sans Mono\",monospace;overflow-wrap:anywhere}\n"
	"p>code{display:block;background:var(--box);border-radius:.4rem;padding:.5rem .7rem}\n"
	".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem;margin:1rem 0}\n"
	".card{background:var(--box);border-radius:.5rem;padding:.6rem .8rem;border-left:.3rem solid}\n"
	".card div{color:var(--soft);font-size:.85rem;line-height:1.35}\n"
	".card data{display:block;font-size:1.45rem;font-weight:600;white-space:nowrap;font-variant-numeric:tabular-nums;line-height:1.4}\n"
	".grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));gap:1rem}\n"
	"figure{margin:.8rem 0;min-width:0}figcaption{color:var(--soft);font-size:.85rem;margin-top:.2rem}\n"
	".wide,.scroll{overflow-x:auto}figure svg{display:block;width:100%;height:auto}.wide svg{min-width:46rem}\n"
	"table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums;margin:.5rem 0}\n"
	"th,td{padding:.3rem .7rem;text-align:left;border-bottom:1px solid var(--edge);vertical-align:top}\n"
	"th{color:var(--soft);font-weight:600;white-space:nowrap}.r{text-align:right;white-space:nowrap}\n"
	"td:first-child,th:first-child{padding-left:0;min-width:7rem}\n"
	".warnings{list-style:none;padding:0}.warnings li{border-left:.3rem solid var(--bad);padding:.2rem .7rem;"
	"margin:.4rem 0;background:var(--box);font-size:.92rem}\n"
	".keys{font-size:.85rem;color:var(--soft)}.keys span{white-space:nowrap;margin-right:1rem}"
	".keys i{display:inline-block;border-width:.35rem;border-style:solid;margin-right:.35rem}\n"
	"footer{color:var(--soft);font-size:.85rem;margin-top:2.5rem}\n"
	"@media(max-width:30rem){body{padding:.8rem .8rem 2rem}.cards{grid-template-columns:repeat(2,minmax(0,1fr))}.card data{font-size:1.1rem}"
	".prose tr{display:grid;grid-template-columns:1fr auto 6.5rem;border-bottom:1px solid var(--edge)}.prose td{border:0}"
	".prose th:last-child{display:none}.prose td:last-child{grid-column:1/-1;padding:0 0 .4rem;color:var(--soft)}}\n"
	"@media print{body{max-width:none;padding:0;font-size:10pt}th,td{padding:.2rem .4rem}th,.r{white-space:normal}"
	"td:first-child{min-width:0}td:last-child{overflow-wrap:anywhere}"
	"table{font-size:8.5pt}h2{break-after:avoid}figure,tr,.card,li{break-inside:avoid}"
	".wide svg{min-width:0}.wide,.scroll{overflow:visible}.card,.warnings li,p>code{outline:1px solid var(--edge)}}\n";

/* What GitHub's Markdown would obey. */
static void md_text(const char *text, FILE *to)
{
	for (; *text; text++) {
		if (*text == '<' || *text == '&')
			fputs(*text == '<' ? "&lt;" : "&amp;", to);
		else if (strchr("\\`*_[]|~#@", *text))
			fprintf(to, "\\%c", *text);
		else
			fputc(*text, to);
	}
}

static void put_text(struct doc *d, const char *text)
{
	d->form == DOC_HTML ? plain_xml(text, d->to) : md_text(text, d->to);
}

static void put_cell(struct doc *d, const struct doc_cell *c)
{
	if (d->form == DOC_HTML && c->key)
		fprintf(d->to, "<data value=\"%.17g\" data-key=\"%s\">", c->value, c->key);
	put_text(d, c->text);
	if (d->form == DOC_HTML && c->key)
		fputs("</data>", d->to);
}

struct doc_cell doc_ms(double ns, const char *key, char *buf, size_t size)
{
	snprintf(buf, size, "%.3f ms", ns / 1e6);
	return (struct doc_cell){buf, key, ns / 1e6};
}

void doc_begin(struct doc *d, const char *title)
{
	if (d->form == DOC_MD) {
		fputs("## ", d->to);
		md_text(title, d->to);
		fputs("\n\n", d->to);
		return;
	}
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	      "<meta name=\"generator\" content=\"nbox " NBOX_VERSION "\">\n"
	      "<link rel=\"icon\" href=\"data:,\">\n<title>",
	      d->to);
	plain_xml(title, d->to);
	fputs("</title>\n<style>\n", d->to);
	fputs(style, d->to);
	svg_style(d->to);
	fputs("</style>\n</head>\n<body>\n<h1>", d->to);
	plain_xml(title, d->to);
	fputs("</h1>\n", d->to);
}

void doc_end(struct doc *d)
{
	if (d->form == DOC_HTML)
		fputs("<footer>Written by nbox " NBOX_VERSION ".</footer>\n</body>\n</html>\n",
		      d->to);
}

void doc_heading(struct doc *d, const char *text)
{
	fputs(d->form == DOC_HTML ? "<h2>" : "### ", d->to);
	put_text(d, text);
	fputs(d->form == DOC_HTML ? "</h2>\n" : "\n\n", d->to);
}

void doc_text(struct doc *d, const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	plain_text(text);
	fputs(d->form == DOC_HTML ? "<p>" : "", d->to);
	put_text(d, text);
	fputs(d->form == DOC_HTML ? "</p>\n" : "\n\n", d->to);
}

void doc_code(struct doc *d, const char *text)
{
	if (d->form == DOC_HTML) {
		fputs("<p><code>", d->to);
		plain_xml(text, d->to);
		fputs("</code></p>\n", d->to);
	} else {
		fprintf(d->to, "    %s\n\n", text);
	}
}

void doc_cards(struct doc *d, const struct doc_card *cards, size_t n)
{
	static const char *const heads[] = {"", "", ""};

	if (d->form == DOC_MD) {
		doc_table_begin(d, "lrl", heads);
		for (size_t i = 0; i < n; i++)
			doc_row(d, (struct doc_cell[]){{.text = cards[i].name},
						       cards[i].value,
						       {.text = cards[i].note}});
		doc_table_end(d);
		return;
	}
	fputs("<div class=\"cards\">\n", d->to);
	for (size_t i = 0; i < n; i++) {
		fprintf(d->to, "<div class=\"card b-%s\"><div>", svg_role_name(cards[i].role));
		put_text(d, cards[i].name);
		fputs("</div>", d->to);
		put_cell(d, &cards[i].value);
		fputs("<div>", d->to);
		put_text(d, cards[i].note);
		fputs("</div></div>\n", d->to);
	}
	fputs("</div>\n", d->to);
}

void doc_warnings(struct doc *d, const char *const *texts, size_t n)
{
	if (d->form == DOC_HTML)
		fputs("<ul class=\"warnings\">\n", d->to);
	for (size_t i = 0; i < n; i++) {
		fputs(d->form == DOC_HTML ? "<li>" : "* ", d->to);
		put_text(d, texts[i]);
		fputs(d->form == DOC_HTML ? "</li>\n" : "\n", d->to);
	}
	fputs(d->form == DOC_HTML ? "</ul>\n" : "\n", d->to);
}

void doc_table_begin(struct doc *d, const char *align, const char *const *heads)
{
	d->align = align;
	if (d->form == DOC_HTML)
		fprintf(d->to, "<div class=\"scroll\"><table%s>\n<thead><tr>",
			strcmp(align, "lrll") == 0 ? " class=\"prose\"" : "");
	for (size_t i = 0; align[i]; i++) {
		if (d->form == DOC_HTML)
			fputs(align[i] == 'r' ? "<th class=\"r\">" : "<th>", d->to);
		else
			fputs("| ", d->to);
		put_text(d, heads[i]);
		fputs(d->form == DOC_HTML ? "</th>" : " ", d->to);
	}
	fputs(d->form == DOC_HTML ? "</tr></thead>\n<tbody>\n" : "|\n", d->to);
	for (size_t i = 0; d->form == DOC_MD && align[i]; i++)
		fputs(align[i] == 'r' ? "|--:" : "|---", d->to);
	fputs(d->form == DOC_HTML ? "" : "|\n", d->to);
}

void doc_row(struct doc *d, const struct doc_cell *cells)
{
	fputs(d->form == DOC_HTML ? "<tr>" : "", d->to);
	for (size_t i = 0; d->align[i]; i++) {
		if (d->form == DOC_HTML)
			fputs(d->align[i] == 'r' ? "<td class=\"r\">" : "<td>", d->to);
		else
			fputs("| ", d->to);
		put_cell(d, &cells[i]);
		fputs(d->form == DOC_HTML ? "</td>" : " ", d->to);
	}
	fputs(d->form == DOC_HTML ? "</tr>\n" : "|\n", d->to);
}

void doc_table_end(struct doc *d)
{
	fputs(d->form == DOC_HTML ? "</tbody></table></div>\n" : "\n", d->to);
}

bool doc_picture_begin(struct doc *d, const char *caption, bool is_wide)
{
	if (d->form != DOC_HTML)
		return false;
	fputs("<figure><figcaption>", d->to);
	plain_xml(caption, d->to);
	fprintf(d->to, "</figcaption><div%s>\n", is_wide ? " class=\"wide\"" : "");
	return true;
}

void doc_picture_end(struct doc *d)
{
	fputs("</div></figure>\n", d->to);
}

void doc_keys(struct doc *d, const struct lane_key *keys, size_t n)
{
	if (d->form != DOC_HTML)
		return;
	fputs("<div class=\"keys\">", d->to);
	for (size_t i = 0; i < n; i++) {
		fprintf(d->to, "<span><i class=\"b-%s\"></i>", svg_role_name(keys[i].role));
		plain_xml(keys[i].text, d->to);
		fputs("</span> ", d->to);
	}
	fputs("</div>\n", d->to);
}

void doc_grid_begin(struct doc *d)
{
	fputs(d->form == DOC_HTML ? "<div class=\"grid\">\n" : "", d->to);
}

void doc_grid_end(struct doc *d)
{
	fputs(d->form == DOC_HTML ? "</div>\n" : "", d->to);
}

/* '<' could end the element, or begin a comment in it. */
void doc_json(struct doc *d, const char *id, const char *json)
{
	if (d->form != DOC_HTML)
		return;
	fprintf(d->to, "<script type=\"application/json\" id=\"%s\">", id);
	for (; *json; json++)
		*json == '<' ? fputs("\\u003c", d->to) : fputc(*json, d->to);
	fputs("</script>\n", d->to);
}
