/* The scenario file: read again when it changes, looked up by key. */
#include "scenario.h"

#include <sys/stat.h>

#define MOST_KEYS 8192

Device devices[MOST_GPUS][MOST_INSTANCES + 1];
int initialized;

static char *text, *keys[MOST_KEYS], *values[MOST_KEYS];
static int count_of_keys;
static struct stat seen;

static void read_scenario(void) {
    const char *path = getenv("FAKE_NVML");
    struct stat now;
    if (!path || stat(path, &now)) return;
    if (text && now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_ino == seen.st_ino &&
        now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec && now.st_size == seen.st_size) return;
    FILE *file = fopen(path, "rb");
    if (!file) return;
    free(text);
    text = calloc(1, now.st_size + 1);
    fread(text, 1, now.st_size, file);
    fclose(file);
    seen = now;
    count_of_keys = 0;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) && count_of_keys < MOST_KEYS) {
        char *equals = strchr(line, '=');
        if (*line == '#' || !equals) continue;
        *equals = 0;
        keys[count_of_keys] = line;
        values[count_of_keys++] = equals + 1;
    }
}

const char *lookup(const char *key) {
    read_scenario();
    for (int i = 0; i < count_of_keys; i++)
        if (!strcmp(keys[i], key)) return values[i];
    return NULL;
}

Code error_in(const char *key) {
    const char *value = lookup(key);
    return value && *value == '!' ? atoi(value + 1) : OK;
}

void log_call(const char *function, const char *key) {
    const char *delay = lookup("delay_us"), *path = getenv("FAKE_NVML_LOG");
    if (delay) usleep(atoi(delay));
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s %s\n", function, key);
    fclose(file);
}

Code field(const char *function, const char *key, const char **value) {
    log_call(function, key);
    Code code = error_in(function);
    if (code) return code;
    *value = lookup(key);
    if (!*value) return NOT_SUPPORTED;
    return **value == '!' ? atoi(*value + 1) : OK;
}

void name_key(char *key, const Device *device, const char *name) {
    if (device->instance < 0) snprintf(key, 96, "%d.%s", device->gpu, name);
    else snprintf(key, 96, "%d.m%d.%s", device->gpu, device->instance, name);
}

Code device_field(const char *function, void *handle, const char *name, const char **value) {
    Device *device = handle;
    char key[96];
    if (!initialized) return UNINITIALIZED;
    if (!device) return BAD_ARGUMENT;
    snprintf(key, sizeof key, "%d.all", device->gpu);
    Code code = error_in(key);
    if (!code) {
        name_key(key, device, function);
        code = error_in(key);
    }
    name_key(key, device, name);
    if (!code) return field(function, key, value);
    log_call(function, key);
    return code;
}

Code give_text(Code code, const char *value, char *out, u32 size) {
    if (code) return code;
    if (strlen(value) + 1 > size) return TOO_SMALL;
    strcpy(out, value);
    return OK;
}

/* What nothing below defines is a stub of the generated file, and asks here. */
Code stub(const char *function) {
    log_call(function, "stub");
    Code code = error_in(function);
    return code ? code : NOT_SUPPORTED;
}
