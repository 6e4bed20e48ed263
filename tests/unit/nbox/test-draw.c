/* Charts and timelines of values that are missing, alone, equal, or have no logarithm. */
#include <math.h>
#include <stdint.h>

#include "cmocka-all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbox/draw/chart.h"
#include "nbox/draw/lanes.h"

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static char *draw(const struct chart *c)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	svg_begin(f, SVG_IN_PAGE, 300, 200, "a <picture> & \"its\" name");
	chart_draw(c, f, 0, 0, 300, 200);
	svg_end(f);
	fclose(f);
	return text;
}

static void whatever_the_values_places_are_numbers(void **state)
{
	static const double none[] = {0}, one[] = {7}, equal[] = {3, 3, 3}, some[] = {1, 2, 3},
			    odd[] = {NAN, 0, 5}, huge[] = {-1e300, 0, 1e300},
			    tiny[] = {1e-300, 2e-300, 3e-300};
	static const struct {
		const double *x, *y;
		size_t n;
	} cases[] = {{none, none, 0}, {one, one, 1},   {some, equal, 3}, {some, odd, 3},
		     {some, huge, 3}, {tiny, tiny, 3}, {equal, some, 3}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int is_log = 0; is_log < 2; is_log++) {
			const struct chart_series s = {.role = SVG_SERIES_1,
						       .look = CHART_LINE | CHART_DOTS |
							       CHART_BARS | CHART_STEMS,
						       .n = cases[i].n,
						       .x = cases[i].x,
						       .y = cases[i].y,
						       .bar = is_log ? 0 : 1};
			const struct chart c = {.x = {.label = "x", .is_log = is_log},
						.y = {.label = "y (ms)", .is_log = is_log},
						.series = &s,
						.n_series = 1};
			char *text = draw(&c);

			assert_null(strstr(text, "nan"));
			assert_null(strstr(text, "inf"));
			free(text);
		}
}

static void a_value_is_drawn_where_it_is(void **state)
{
	static const double x[] = {0, 10}, y[] = {0, 100};
	const struct chart_series s = {
		.role = SVG_SERIES_1, .look = CHART_DOTS, .n = 2, .x = x, .y = y};
	const struct chart c = {.x = {.label = "x", .has_zero = true},
				.y = {.label = "y", .has_zero = true},
				.series = &s,
				.n_series = 1};
	char *text = draw(&c), *first = strstr(text, "<circle"), *second;
	double at[2][2];

	(void)state;
	assert_int_equal(count(text, "<circle"), 2);
	second = strstr(first + 1, "<circle");
	assert_int_equal(sscanf(first, "<circle cx=\"%lf\" cy=\"%lf\"", &at[0][0], &at[0][1]), 2);
	assert_int_equal(sscanf(second, "<circle cx=\"%lf\" cy=\"%lf\"", &at[1][0], &at[1][1]), 2);
	assert_true(at[0][0] < at[1][0] && at[0][1] > at[1][1]); /* y goes up */
	assert_int_equal(at[0][1], 200 - 34);                    /* 0 is on the axis */
	assert_non_null(strstr(text, "aria-label=\"a &lt;picture> &amp; &quot;its&quot; name\""));
	free(text);
}

static void ticks_are_round_and_few(void **state)
{
	struct chart_tick ticks[32];

	(void)state;
	for (double range = 1e-9; range < 1e12; range *= 3.7) {
		size_t n = chart_ticks(0, range, 5, ticks);

		assert_in_range(n, 2, 6);
		for (size_t i = 0; i < n; i++)
			assert_true(strlen(ticks[i].text) <= 8);
	}
}

static void bars_outside_of_a_timeline_are_cut(void **state)
{
	struct lane_bar bars[] = {{.from = -5, .to = 2},
				  {.from = 8, .to = 99},
				  {.from = 20, .to = 30}};
	const struct lane lane = {.name = "a", .bars = bars, .n = 3};
	const struct lanes l = {&lane, 1, 10, "ms"};
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	lanes_draw(&l, f, 0, 0, 100);
	fclose(f);
	assert_int_equal(count(text, "<rect"), 3); /* the lane, and two bars */
	assert_non_null(strstr(text, "<rect x=\"0.00\" y=\"15.0\" width=\"20.00\""));
	assert_non_null(strstr(text, "<rect x=\"80.00\" y=\"15.0\" width=\"20.00\""));
	free(text);
}

/* Names that fill two lines of a chart 300 wide. */
static void a_long_legend_has_lines_of_its_own(void **state)
{
	static const double at[] = {0, 10};
	struct chart_series s[6];
	const struct chart c = {.x = {.label = "x"},
				.y = {.label = "y (ms)"},
				.series = s,
				.n_series = 6};
	char *text, *key;
	double y, before = 0;
	size_t n_lines = 0;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		s[i] = (struct chart_series){.name = "delay 10ms",
					     .role = SVG_SERIES_1,
					     .look = CHART_DOTS,
					     .n = 2,
					     .x = at,
					     .y = at};
	assert_float_equal(chart_legend_height(&c, 1000), 0, 0);
	assert_float_equal(chart_legend_height(&c, 300), 2 * 16, 1e-9);
	text = draw(&c);
	key = text;
	while ((key = strstr(key, ">delay 10ms<"))) {
		const char *tag = key;

		while (strncmp(tag, "<text", 5) != 0)
			tag--;
		assert_int_equal(sscanf(strstr(tag, " y="), " y=\"%lf\"", &y), 1);
		n_lines += y > before;
		before = y;
		key++;
	}
	assert_int_equal(n_lines, 2);
	assert_true(before < 22 + 2 * 16 - 9); /* above the label of the axis */
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_the_values_places_are_numbers),
		cmocka_unit_test(a_value_is_drawn_where_it_is),
		cmocka_unit_test(ticks_are_round_and_few),
		cmocka_unit_test(bars_outside_of_a_timeline_are_cut),
		cmocka_unit_test(a_long_legend_has_lines_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
