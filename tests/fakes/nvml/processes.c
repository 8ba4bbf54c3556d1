/* Processes of the fake, and the memory that they hold. */
#include "scenario.h"

#define MOST_PROCESSES 256
#define UNKNOWN_MEMORY (~0ull)

typedef struct {
    u32 pid;
    u64 memory;
    u32 gpu_instance, compute_instance;
} Process; /* 24 bytes, as _v2 and _v3 calls have them */
typedef struct {
    u32 pid;
    u64 memory;
} OldProcess;

static int is_alive(u32 pid) {
    char key[32], path[64], line[512], state = 'X';
    snprintf(key, sizeof key, "ghost.%u", pid);
    if (lookup(key)) return 1;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    char *name_end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (name_end) state = name_end[2];
    fclose(file);
    return state != 'Z' && state != 'X';
}

static u32 parse(const char *list, Process *out) {
    u32 count = 0;
    while (list && *list && count < MOST_PROCESSES) {
        char memory[32] = "-";
        Process *process = &out[count];
        *process = (Process){.gpu_instance = ~0u, .compute_instance = ~0u};
        if (sscanf(list, "%u:%31[^:,]:%u:%u", &process->pid, memory, &process->gpu_instance,
                   &process->compute_instance) < 1)
            break;
        process->memory = *memory == '-' ? UNKNOWN_MEMORY : strtoull(memory, NULL, 0) << 20;
        if (is_alive(process->pid)) count++;
        list = strchr(list, ',');
        if (list) list++;
    }
    return count;
}

static void write_record(void *out, u32 index, const Process *process, u32 size) {
    char *record = (char *)out + index * size;
    if (size > sizeof *process) memset(record, 0, size);
    memcpy(record, process, size < sizeof *process ? sizeof(OldProcess) : sizeof *process);
}

static Code running(const char *function, void *handle, const char *name, u32 *count, void *out,
                    u32 size) {
    const char *value = "";
    Process found[MOST_PROCESSES];
    Code code = device_field(function, handle, name, &value);
    if (code == NOT_SUPPORTED && !value) code = OK; /* no such key: no processes */
    if (code) return code;
    u32 room = *count;
    *count = parse(value, found);
    if (*count > room || (*count && !out)) return TOO_SMALL;
    for (u32 i = 0; i < *count; i++) write_record(out, i, &found[i], size);
    return OK;
}

#define RUNNING(FUNCTION, KEY) \
    EXPORT Code FUNCTION##_v3(void *handle, u32 *count, void *out) { \
        u32 size = lookup("stride32") ? 32 : sizeof(Process); \
        return running(__func__, handle, KEY, count, out, size); \
    } \
    EXPORT Code FUNCTION##_v2(void *handle, u32 *count, void *out) { \
        return running(__func__, handle, KEY, count, out, sizeof(Process)); \
    } \
    EXPORT Code FUNCTION(void *handle, u32 *count, void *out) { \
        return running(__func__, handle, KEY, count, out, sizeof(OldProcess)); \
    }
RUNNING(nvmlDeviceGetComputeRunningProcesses, "procs")
RUNNING(nvmlDeviceGetGraphicsRunningProcesses, "gprocs")
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses, "mpsprocs")

static u64 held_by_the_living(const Device *device) {
    static const char *const lists[] = {"procs", "gprocs"};
    u64 total = 0;
    for (int list = 0; list < 2; list++) {
        char key[96];
        Process found[MOST_PROCESSES];
        name_key(key, device, lists[list]);
        u32 count = error_in(key) ? 0 : parse(lookup(key), found);
        for (u32 i = 0; i < count; i++)
            if (found[i].memory != UNKNOWN_MEMORY) total += found[i].memory;
    }
    return total;
}

static Code memory(const char *function, void *handle, u64 *total, u64 *reserved, u64 *used) {
    const char *value;
    Code code = device_field(function, handle, "mem", &value);
    if (code) return code;
    *total = *reserved = *used = 0;
    sscanf(value, "%llu,%llu,%llu", total, reserved, used);
    *total <<= 20;
    *reserved <<= 20;
    *used = (*used << 20) + held_by_the_living(handle);
    return OK;
}

/* As the driver has it: total, free, used, and what it reserves counted as used. */
EXPORT Code nvmlDeviceGetMemoryInfo(void *handle, u64 *out) {
    u64 total, reserved, used;
    Code code = memory(__func__, handle, &total, &reserved, &used);
    if (code) return code;
    out[0] = total;
    out[1] = total - reserved - used;
    out[2] = reserved + used;
    return OK;
}
/* version, total, reserved, free, used */
EXPORT Code nvmlDeviceGetMemoryInfo_v2(void *handle, u64 *out) {
    u64 total, reserved, used;
    Code code = memory(__func__, handle, &total, &reserved, &used);
    if (code) return code;
    out[1] = total;
    out[2] = reserved;
    out[3] = total - reserved - used;
    out[4] = used;
    return OK;
}

EXPORT Code nvmlDeviceGetBAR1MemoryInfo(void *handle, u64 *out) {
    const char *value;
    Code code = device_field(__func__, handle, "bar1", &value);
    if (code) return code;
    sscanf(value, "%llu,%llu", &out[0], &out[2]);
    out[0] <<= 20;
    out[2] <<= 20;
    out[1] = out[0] - out[2];
    return OK;
}

EXPORT Code nvmlDeviceGetProcessUtilization(void *handle, void *out, u32 *count, u64 since) {
    const char *value;
    (void)out, (void)since;
    *count = 0;
    Code code = device_field(__func__, handle, "procutil", &value);
    return code == NOT_SUPPORTED ? NOT_FOUND : code;
}
