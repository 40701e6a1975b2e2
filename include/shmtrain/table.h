/* What a parameter table is in a model: how it is changed, and how it begins. */
#ifndef SHMTRAIN_TABLE_H
#define SHMTRAIN_TABLE_H

#ifdef __cplusplus
extern "C" {
#endif

enum shmtrain_role {
    SHMTRAIN_TRAINED, /* the update rule changes it by its gradient */

    /* A running mean of what examples show. Its "gradient" is the sum over an item's examples of (value - what they show): divided by
     * their number and taken off `rate` times, it moves the value by this share towards them. In `aggregate` that is of all examples
     * of an update, and done once. Copies of the parameters have it averaged, or (merged elastically) drawn together. It has neither
     * L1, L2 nor a schedule. */
    SHMTRAIN_STATISTIC,

    SHMTRAIN_FROZEN /* nobody changes it: a push to it is an error */
};

/* How a table begins, with the same bits everywhere: uniform numbers are functions of (seed, table, place). */
enum shmtrain_start {
    SHMTRAIN_ZEROS,
    SHMTRAIN_ONES,
    SHMTRAIN_HE,    /* uniform within +- sqrt(6 / fan_in), whose variance is 2 / fan_in (He et al. 2015) */
    SHMTRAIN_GLOROT /* uniform within +- sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010) */
};

#ifdef __cplusplus
}
#endif
#endif
