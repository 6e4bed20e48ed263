#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "bootstrap/serve/address.h"
#include "cmocka-all.h"

static void an_address_is_told_with_its_port(void **state)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(4711)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	uint8_t address[NCCL_ADDRESS_BYTES];
	char text[ADDRESS_TEXT_MAX];

	(void)state;
	a4.sin_addr.s_addr = htonl(0x0a000002);
	assert_int_equal(address_set(address, (struct sockaddr *)&a4), 0);
	assert_int_equal(address_len(address), sizeof(a4));
	assert_string_equal(address_text(address, text, sizeof(text)), "10.0.0.2:4711");
	address_set_port(address, 80);
	assert_string_equal(address_text(address, text, sizeof(text)), "10.0.0.2:80");
	assert_int_equal(address_set(address, (struct sockaddr *)&a6), 0);
	assert_int_equal(address_len(address), sizeof(a6));
	address_set_port(address, 65535);
	assert_string_equal(address_text(address, text, sizeof(text)), "[::1]:65535");
}

static void what_is_no_address_of_ip_has_no_length(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	uint8_t address[NCCL_ADDRESS_BYTES];
	char text[ADDRESS_TEXT_MAX];

	(void)state;
	assert_int_equal(address_set(address, (struct sockaddr *)&a), -EAFNOSUPPORT);
	memset(address, 0xff, sizeof(address));
	assert_int_equal(address_len(address), 0);
	assert_non_null(strstr(address_text(address, text, sizeof(text)), "family 65535"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_told_with_its_port),
		cmocka_unit_test(what_is_no_address_of_ip_has_no_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
