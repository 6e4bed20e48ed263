/* Prints the variables that are named, "NAME=value", into FILE.LOCAL_RANK: with a program that
 * is no shell, sanitized libraries can be preloaded too. usage: show-env FILE NAME... */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	const char *slurm = getenv("SLURM_LOCALID"), *ompi = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
	const char *local = getenv("LOCAL_RANK") ? getenv("LOCAL_RANK") : slurm ? slurm : ompi;
	char path[4096];
	FILE *f;

	if (argc < 2)
		return 2;
	snprintf(path, sizeof(path), "%s.%s", argv[1], local ? local : "none");
	f = fopen(path, "w");
	if (!f)
		return 1;
	for (int i = 2; i < argc; i++)
		fprintf(f, "%s%s", getenv(argv[i]) ? getenv(argv[i]) : "-",
			i + 1 < argc ? " " : "\n");
	return fclose(f) != 0;
}
