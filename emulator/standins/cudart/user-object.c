/* See user-object.h. */
#include "user-object.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime.h"

#include "base/cleanup.h"

static void user_free(struct object *object)
{
	free(container_of(object, struct user_object, object));
}

void user_putp(struct user_object **user)
{
	if (*user)
		object_unref(&(*user)->object);
}

bool user_drop(struct user_object *user, unsigned n)
{
	unsigned had = atomic_load_explicit(&user->n_owned, memory_order_relaxed);
	struct object *object;

	do {
		if (had < n)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&user->n_owned, &had, had - n,
							memory_order_acq_rel,
							memory_order_relaxed));
	if (had == n && n) {
		runtime_callback_begin();
		user->destroy(user->ptr);
		runtime_callback_end();
		object = object_retire(OBJECT_USER, user->object.handle);
		if (object)
			object_unref(object);
	}
	return true;
}

int user_list_add(struct user_list *list, struct user_object *user)
{
	unsigned capacity = list->capacity ? list->capacity * 2 : 4;
	struct user_object **objects;

	if (list->n == list->capacity) {
		objects = realloc(list->objects, capacity * sizeof(struct user_object *));
		if (!objects)
			return -ENOMEM;
		list->objects = objects;
		list->capacity = capacity;
	}
	object_ref(&user->object);
	list->objects[list->n++] = user;
	return 0;
}

int user_list_copy(const struct user_list *from, struct user_list *to)
{
	unsigned n = to->n;

	for (unsigned i = 0; i < from->n; i++) {
		if (user_list_add(to, from->objects[i]) != 0) {
			while (to->n > n)
				object_unref(&to->objects[--to->n]->object);
			return -ENOMEM;
		}
	}
	for (unsigned i = 0; i < from->n; i++)
		atomic_fetch_add_explicit(&from->objects[i]->n_owned, 1, memory_order_relaxed);
	return 0;
}

void user_list_deinit(struct user_list *list)
{
	for (unsigned i = 0; i < list->n; i++) {
		user_drop(list->objects[i], 1);
		object_unref(&list->objects[i]->object);
	}
	free(list->objects);
	*list = (struct user_list){0};
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *ret_object, void *ptr, cudaHostFn_t destroy,
				 unsigned int n_refs, unsigned int flags)
{
	CLEANUP(user_putp) struct user_object *user = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!ret_object || !destroy || !n_refs || flags != cudaUserObjectNoDestructorSync)
		return runtime_return(cudaErrorInvalidValue);
	user = calloc(1, sizeof(*user));
	if (!user)
		return runtime_return(cudaErrorMemoryAllocation);
	object_init(&user->object, OBJECT_USER, user_free);
	atomic_init(&user->n_owned, n_refs);
	user->ptr = ptr;
	user->destroy = destroy;
	if (object_publish(&user->object) != 0)
		return runtime_return(cudaErrorMemoryAllocation);
	*ret_object = (cudaUserObject_t)user->object.handle;
	return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t handle, unsigned int count)
{
	CLEANUP(user_putp) struct user_object *user = object_get(OBJECT_USER, (uintptr_t)handle);

	if (!user || !count || !user_drop(user, count))
		return runtime_return(cudaErrorInvalidValue);
	return cudaSuccess;
}
