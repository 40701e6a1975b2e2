/* Options: what the command line, the environment and shmtrain_store_set know by a name. */
#ifndef SHMTRAIN_OPTION_H
#define SHMTRAIN_OPTION_H

#ifdef __cplusplus
extern "C" {
#endif

/* One option, of the library or of a model. */
struct shmtrain_option {
    const char *name;        /* "workers": --workers, shmtrain_store_set(s, "workers", ...) */
    char letter;             /* 'w': -w; 0: none */
    const char *argument;    /* "N"; NULL: a switch, set with "1" or "0" */
    const char *standard;    /* the default, in words that may be typed, or "" */
    const char *environment; /* "SHMTRAIN_WORKERS" */
    const char *group;       /* heading in the help */
    const char *help;        /* one line */
};

#ifdef __cplusplus
}
#endif
#endif
