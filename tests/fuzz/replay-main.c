/* Feeds every file of the folders on the command line to a fuzz target, and a few mutations of
 * each (bits flipped, bytes cut off, by a fixed seed). So what libFuzzer once found is tried
 * again with any compiler. */
#include "fuzz.h"

#include <dirent.h>

static uint64_t seed = 88172645463325252u;

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* An exact-size allocation, so that a sanitizer sees every byte read too far. */
static void feed(const uint8_t *data, size_t size)
{
	uint8_t *copy = calloc(size ? size : 1, 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static int replay(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t size = 0, room = 0, got;

	if (!f)
		return -1;
	do {
		if (size == room) {
			room = room ? room * 2 : 4096;
			data = realloc(data, room);
			if (!data)
				abort();
		}
		got = fread(data + size, 1, room - size, f);
		size += got;
	} while (got > 0);
	fclose(f);
	feed(data, size);
	for (int i = 0; i < 64 && size > 0; i++) {
		size_t at = draw() % size;
		uint8_t was = data[at];

		data[at] = (uint8_t)(i % 3 == 0 ? draw() : was ^ (1u << draw() % 8));
		feed(data, size);
		data[at] = was;
		feed(data, draw() % size);
	}
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	int n = 0;

	feed((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++) {
		DIR *d = opendir(argv[i]);
		struct dirent *e;
		char path[4096];

		if (!d) {
			fprintf(stderr, "%s: cannot be opened\n", argv[i]);
			return 1;
		}
		while ((e = readdir(d))) {
			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			if (replay(path) < 0) {
				fprintf(stderr, "%s: cannot be read\n", path);
				return 1;
			}
			n++;
		}
		closedir(d);
	}
	printf("%d inputs replayed\n", n);
	return n > 0 ? 0 : 1;
}
