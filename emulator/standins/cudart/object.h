/* Handles. A program holds a number, never a pointer. A table turns the number into an object or
 * into nothing, so that a stale or invented handle is an error code and no crash.
 *
 * Objects are counted: the table holds one reference from object_publish() to object_retire();
 * everybody else who uses an object holds another one. Thread-safe. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum object_kind {
	OBJECT_STREAM = 1,
	OBJECT_EVENT,
	OBJECT_GRAPH,
	OBJECT_NODE,
	OBJECT_EXEC,
	OBJECT_USER,
	OBJECT_POOL,
};

struct object {
	atomic_uint n_refs;
	enum object_kind kind;
	uintptr_t handle; /* 0 while it is not in the table */
	void (*free)(struct object *object);
};

/* Prepares an embedded object with one reference, the caller's. */
void object_init(struct object *object, enum object_kind kind, void (*free)(struct object *));

/* Gives @object a handle; the table takes its own reference. Return: 0, or -ENOMEM. */
int object_publish(struct object *object);

/* Return: the object with a new reference, or NULL when @handle is none of this kind. */
void *object_get(enum object_kind kind, uintptr_t handle);

/* Takes the handle out of the table. Return: the object with the table's reference, or NULL. */
void *object_retire(enum object_kind kind, uintptr_t handle);

void object_ref(struct object *object);
void object_unref(struct object *object);
