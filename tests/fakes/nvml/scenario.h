/* What the parts of the fake share: the scenario, and devices as handles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MOST_GPUS 64
#define MOST_INSTANCES 8

typedef unsigned int u32;
typedef unsigned long long u64;
typedef int Code;
enum {
    OK = 0,
    UNINITIALIZED = 1,
    BAD_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    TOO_SMALL = 7
};

typedef struct {
    int gpu, instance; /* instance -1 is the GPU itself */
} Device;

extern Device devices[MOST_GPUS][MOST_INSTANCES + 1];
extern int initialized;

/* The value of a key, or NULL. */
const char *lookup(const char *key);
/* The error that a key's value "!N" asks for. */
Code error_in(const char *key);
void log_call(const char *function, const char *key);
/* The value of a field of the system, logged; the code is what the call returns. */
Code field(const char *function, const char *key, const char **value);
void name_key(char *key, const Device *device, const char *name);
/* The same of a device. */
Code device_field(const char *function, void *handle, const char *name, const char **value);
Code give_text(Code code, const char *value, char *out, u32 size);
