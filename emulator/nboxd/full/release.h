/* When ops begin and end, as traffic/ hears of it: of posts of communicators that have no id of
 * nboxd's nothing is told. What is wrong ends the communicator, later in the loop's round. */
#pragma once

struct post;

/* Its worker got RELEASE. */
void full_on_released(const struct post *post);
/* ... MOVE. */
void full_on_moved(const struct post *post);
/* ... and has sent DONE. */
void full_on_passed(const struct post *post);
