/* Headers of frames, names of types, words of options. */
#include <stdint.h>

#include "cmocka-all.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/wire.h"

static void every_type_has_a_name(void **state)
{
	uint32_t t;

	(void)state;
	for (t = 1; t < WIRE_TYPE_END; t++)
		assert_string_not_equal(wire_type_name(t), "?");
	assert_string_equal(wire_type_name(0), "?");
	assert_string_equal(wire_type_name(WIRE_TYPE_END), "?");
	assert_string_equal(wire_type_name(UINT32_MAX), "?");
	assert_string_equal(wire_type_name(WIRE_COMM_READY), "COMM_READY");
}

static void a_fresh_header_is_valid(void **state)
{
	struct wire_hdr h, zero = {0};
	uint32_t t;

	(void)state;
	for (t = 1; t < WIRE_TYPE_END; t++) {
		memset(&h, 0xff, sizeof(h));
		wire_hdr_init(&h, t, 17);
		assert_int_equal(wire_hdr_check(&h, NULL), 0);
		assert_int_equal(h.body_bytes, 17);
		h.magic = 0;
		h.version = 0;
		h.type = 0;
		h.body_bytes = 0;
		assert_memory_equal(&h, &zero, sizeof(h));
	}
}

static void a_broken_header_is_refused(void **state)
{
	struct err err;
	struct wire_hdr h;
	char version[32];

	(void)state;
	memset(&h, 0xff, sizeof(h));
	assert_int_equal(wire_hdr_check(&h, &err), -EPROTO);
	assert_non_null(strstr(err.text, "not a frame of nbox"));

	wire_hdr_init(&h, WIRE_BYE, 0);
	h.version++;
	assert_int_equal(wire_hdr_check(&h, &err), -EPROTO);
	snprintf(version, sizeof(version), "version %d", WIRE_VERSION);
	assert_non_null(strstr(err.text, version));

	wire_hdr_init(&h, WIRE_BYE, 0);
	h.type = 0;
	assert_int_equal(wire_hdr_check(&h, &err), -EPROTO);
	h.type = WIRE_TYPE_END;
	assert_int_equal(wire_hdr_check(&h, &err), -EPROTO);
	assert_non_null(strstr(err.text, "unknown type"));
}

static void bodies_are_bounded_by_type(void **state)
{
	struct wire_hdr h;
	uint32_t t;

	(void)state;
	for (t = 1; t < WIRE_TYPE_END; t++) {
		uint64_t most =
			t == WIRE_MESSAGE || t == WIRE_BOOT ? WIRE_BODY_MAX : WIRE_CONTROL_MAX;

		wire_hdr_init(&h, t, most);
		assert_int_equal(wire_hdr_check(&h, NULL), 0);
		h.body_bytes++;
		assert_int_equal(wire_hdr_check(&h, NULL), -EPROTO);
		h.body_bytes = UINT64_MAX;
		assert_int_equal(wire_hdr_check(&h, NULL), -EPROTO);
	}
}

static void words_go_there_and_back(void **state)
{
	struct err err;
	uint32_t i, got;

	(void)state;
	for (i = DATA_MIRROR; i <= DATA_NONE; i++) {
		assert_int_equal(wire_data_parse(wire_data_name(i), &got, NULL), 0);
		assert_int_equal(got, i);
	}
	assert_string_equal(wire_data_name(i), "?");
	assert_string_equal(wire_exchange_name(EXCHANGE_MESSAGES), "messages");
	assert_string_equal(wire_exchange_name(EXCHANGE_PAYLOAD + 1), "?");
	got = 77;
	assert_int_equal(wire_data_parse("miror", &got, &err), -EINVAL);
	assert_int_equal(got, 77);
	assert_non_null(strstr(err.text, "did you mean 'mirror'"));
	assert_int_equal(wire_data_parse("", &got, &err), -EINVAL);
	assert_int_equal(wire_data_parse("Mirror", &got, &err), -EINVAL);
	assert_int_equal(wire_data_parse("xylophone-quartet", &got, &err), -EINVAL);
	assert_non_null(strstr(err.text, "mirror, fill, identity, none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_has_a_name),
		cmocka_unit_test(a_fresh_header_is_valid),
		cmocka_unit_test(a_broken_header_is_refused),
		cmocka_unit_test(bodies_are_bounded_by_type),
		cmocka_unit_test(words_go_there_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
