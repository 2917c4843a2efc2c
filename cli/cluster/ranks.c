/*
 * ranks.c - the processes that mpirun has started: who this one is, and what
 * they tell each other. Nothing else knows MPI.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef LMQ_HAVE_MPI
#include <mpi.h>
#endif

#include "cli/command.h"

/* What launchers say before MPI is asked, which takes long and is done only
 * where it is needed. */
static long
launched_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        NULL};
    const char *size = NULL;

    for (int i = 0; names[i] != NULL && size == NULL; i++)
        size = getenv(names[i]);
    if (size == NULL && getenv("PMIX_RANK") != NULL)
        size = getenv("SLURM_STEP_NUM_TASKS"); /* srun --mpi=pmix */
    return size == NULL ? 1 : strtol(size, NULL, 10);
}

#ifdef LMQ_HAVE_MPI

/* MPI counts in int. */
#define MESSAGE_MOST ((size_t)1 << 30)

bool
start_ranks(const struct arguments *arguments, struct ranks *ranks)
{
    int rank = 0, n = 1;

    (void)arguments;
    *ranks = (struct ranks){.n = 1};
    if (launched_ranks() <= 1)
        return true;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS ||
        MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &n) != MPI_SUCCESS) {
        print_error("MPI does not start");
        return false;
    }
    *ranks = (struct ranks){.rank = (unsigned)rank, .n = (unsigned)n};
    return true;
}

/* A rank that cannot go on ends all: none may wait for it. */
int
end_ranks(const struct ranks *ranks, int code)
{
    if (ranks->n <= 1)
        return code;
    if (code != EXIT_DONE && code != EXIT_GATE) {
        end_by_signal(code);
        MPI_Abort(MPI_COMM_WORLD, code);
    }
    MPI_Finalize();
    return code;
}

void
wait_for_ranks(const struct ranks *ranks)
{
    if (ranks->n > 1)
        MPI_Barrier(MPI_COMM_WORLD);
}

static char *
receive(int from)
{
    uint64_t size = 0;

    MPI_Recv(&size, 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    char *text = malloc((size_t)size + 1);
    for (size_t at = 0, n; text != NULL && at < size; at += n) {
        n = (size_t)size - at < MESSAGE_MOST ? (size_t)size - at
                                             : MESSAGE_MOST;
        MPI_Recv(text + at, (int)n, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    if (text != NULL)
        text[size] = '\0';
    return text;
}

static void
send(const char *text)
{
    uint64_t size = strlen(text);

    MPI_Send(&size, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD);
    for (size_t at = 0, n; at < size; at += n) {
        n = (size_t)size - at < MESSAGE_MOST ? (size_t)size - at
                                             : MESSAGE_MOST;
        MPI_Send(text + at, (int)n, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

bool
gather_texts(const struct ranks *ranks, char *own, char **texts)
{
    bool is_complete = true;

    if (ranks->rank > 0) {
        send(own);
        return true;
    }
    texts[0] = own;
    for (unsigned i = 1; i < ranks->n; i++) {
        texts[i] = receive((int)i);
        is_complete = is_complete && texts[i] != NULL;
    }
    return is_complete;
}

int
share_bytes(void *context, unsigned from, void *bytes, size_t n)
{
    char *p = bytes;

    (void)context;
    for (size_t at = 0, size; at < n; at += size) {
        size = n - at < MESSAGE_MOST ? n - at : MESSAGE_MOST;
        if (MPI_Bcast(p + at, (int)size, MPI_BYTE, (int)from,
                      MPI_COMM_WORLD) != MPI_SUCCESS)
            return -1;
    }
    return 0;
}

#else

bool
start_ranks(const struct arguments *arguments, struct ranks *ranks)
{
    *ranks = (struct ranks){.n = 1};
    if (launched_ranks() <= 1)
        return true;
    usage_error(arguments->command,
                "started as one of %ld ranks, but built without MPI: configure "
                "--with-mpi, or give each a --part",
                launched_ranks());
    return false;
}

int
end_ranks(const struct ranks *ranks, int code)
{
    (void)ranks;
    return code;
}

void
wait_for_ranks(const struct ranks *ranks)
{
    (void)ranks;
}

bool
gather_texts(const struct ranks *ranks, char *own, char **texts)
{
    (void)ranks;
    texts[0] = own;
    return true;
}

int
share_bytes(void *context, unsigned from, void *bytes, size_t n)
{
    (void)context;
    (void)from;
    (void)bytes;
    (void)n;
    return -1;
}

#endif
