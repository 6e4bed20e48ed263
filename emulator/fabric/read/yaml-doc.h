/* A YAML file as libyaml's document, with places: what the readers of fabrics share. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#include "base/err.h"

struct yaml_doc {
	const char *name; /* of the file; borrowed */
	yaml_document_t document;
	struct err *err;
};

/* One document; its root is a mapping. Return: 0; -EINVAL with FILE:LINE:COLUMN; -ENOMEM. */
int yaml_doc_open(struct yaml_doc *d, const char *name, const char *text, size_t n,
		  struct err *err);
void yaml_doc_close(struct yaml_doc *d);

yaml_node_t *yaml_doc_root(struct yaml_doc *d);
yaml_node_t *yaml_doc_node(struct yaml_doc *d, int index);
/* Return: -EINVAL. */
int yaml_doc_refuse(struct yaml_doc *d, const yaml_node_t *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The text of a scalar without control characters. Return: 0; -EINVAL, with @what. */
int yaml_doc_text(struct yaml_doc *d, const yaml_node_t *node, const char *what, const char **ret);
int yaml_doc_count(struct yaml_doc *d, const yaml_node_t *node, const char *what, uint32_t *ret);
/* Checks that @node is a mapping and its keys are texts, each once. */
int yaml_doc_mapping(struct yaml_doc *d, const yaml_node_t *node, const char *what);
int yaml_doc_sequence(struct yaml_doc *d, const yaml_node_t *node, const char *what);
/* The value of @key; NULL: it is not there. */
yaml_node_t *yaml_doc_get(struct yaml_doc *d, const yaml_node_t *mapping, const char *key);
/* "unknown key 'nic_gpu'; did you mean 'nic_gpus'?" @keys ends with NULL. */
int yaml_doc_unknown(struct yaml_doc *d, const yaml_node_t *at, const char *key,
		     const char *const *keys);
