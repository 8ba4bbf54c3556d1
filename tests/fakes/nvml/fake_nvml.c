/* A fake libnvidia-ml.so.1 that answers as a scenario file says, so that tests need no GPU.
 *
 * FAKE_NVML names the scenario: "key=value" a line, read again whenever the file changes.
 *   key            a field of the system (driver, cuda, init, count) or of a device: 0.name for
 *                  GPU 0, 0.m1.uuid for its second MIG instance; an absent field is not supported
 *   !N             the call returns the NVML error N
 *   0.all=!15      every call on GPU 0 does, 0.handle=!15 only the one that finds it
 *   0.FUNCTION=!N  that function of GPU 0 does, FUNCTION=!N that function of all
 *   0.procs=PID:MIB[:GI:CI],...  its processes (MIB - is unknown); the dead leave the list, unless
 *                  ghost.PID is there; gprocs are graphics, mpsprocs MPS processes
 *   0.mem=TOTAL,RESERVED,USED    in MiB; what live processes hold is added to USED
 *   stride32       the _v3 calls write records of 32 bytes, as drivers 535.43 to 535.86 did
 *   delay_us=N     every call takes that long
 * FAKE_NVML_LOG names a file that gets a line per call.
 */
#include "scenario.h"

static Code initialize(const char *function) {
    const char *value;
    Code code = field(function, "init", &value);
    if (code == NOT_SUPPORTED && !lookup("init")) code = OK;
    if (code) return code;
    for (int gpu = 0; gpu < MOST_GPUS; gpu++)
        for (int i = 0; i <= MOST_INSTANCES; i++) devices[gpu][i] = (Device){gpu, i - 1};
    initialized++;
    return OK;
}

EXPORT Code nvmlInitWithFlags(u32 flags) { (void)flags; return initialize(__func__); }
EXPORT Code nvmlInit_v2(void) { return initialize(__func__); }
EXPORT Code nvmlInit(void) { return initialize(__func__); }
EXPORT Code nvmlShutdown(void) {
    log_call(__func__, "");
    if (!initialized) return UNINITIALIZED;
    initialized--;
    return OK;
}
EXPORT const char *nvmlErrorString(Code code) {
    (void)code;
    return "an error of the fake";
}

#define SYSTEM_TEXT(FUNCTION, KEY) \
    EXPORT Code FUNCTION(char *out, u32 size) { \
        const char *value = NULL; \
        Code code = field(__func__, KEY, &value); \
        return give_text(code, value, out, size); \
    }
#define SYSTEM_NUMBER(FUNCTION, KEY) \
    EXPORT Code FUNCTION(u32 *out) { \
        const char *value; \
        Code code = initialized ? field(__func__, KEY, &value) : UNINITIALIZED; \
        if (!code) *out = strtoul(value, NULL, 0); \
        return code; \
    }
SYSTEM_TEXT(nvmlSystemGetDriverVersion, "driver")
SYSTEM_TEXT(nvmlSystemGetNVMLVersion, "nvml")
SYSTEM_NUMBER(nvmlSystemGetCudaDriverVersion_v2, "cuda")
SYSTEM_NUMBER(nvmlSystemGetCudaDriverVersion, "cuda")
SYSTEM_NUMBER(nvmlDeviceGetCount_v2, "count")
SYSTEM_NUMBER(nvmlDeviceGetCount, "count")

EXPORT Code nvmlSystemGetProcessName(u32 pid, char *out, u32 size) {
    char key[32];
    const char *value = NULL;
    snprintf(key, sizeof key, "pname.%u", pid);
    Code code = field(__func__, key, &value);
    return give_text(code == NOT_SUPPORTED ? NOT_FOUND : code, value, out, size);
}

/* ---- handles */

EXPORT Code nvmlDeviceGetHandleByIndex_v2(u32 index, void **out) {
    u32 count;
    char key[32];
    Code code = nvmlDeviceGetCount_v2(&count);
    if (code) return code;
    if (index >= count || index >= MOST_GPUS) return BAD_ARGUMENT;
    snprintf(key, sizeof key, "%u.handle", index);
    log_call(__func__, key);
    *out = &devices[index][0];
    return error_in(key);
}
EXPORT Code nvmlDeviceGetHandleByIndex(u32 index, void **out) {
    return nvmlDeviceGetHandleByIndex_v2(index, out);
}

static Code find_device(const char *name, const char *wanted, void **out) {
    u32 count;
    Code code = nvmlDeviceGetCount_v2(&count);
    if (code) return code;
    for (u32 gpu = 0; gpu < count && gpu < MOST_GPUS; gpu++)
        for (int i = 0; i <= MOST_INSTANCES; i++) {
            char key[96];
            name_key(key, &devices[gpu][i], name);
            const char *value = lookup(key);
            if (!value || strcasecmp(value, wanted)) continue;
            *out = &devices[gpu][i];
            snprintf(key, sizeof key, "%u.handle", gpu);
            return error_in(key);
        }
    return NOT_FOUND;
}
EXPORT Code nvmlDeviceGetHandleByUUID(const char *uuid, void **out) {
    return find_device("uuid", uuid, out);
}
EXPORT Code nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **out) {
    return find_device("bus", bus, out);
}
EXPORT Code nvmlDeviceGetHandleBySerial(const char *serial, void **out) {
    return find_device("serial", serial, out);
}

static Code own_number(const char *function, void *handle, const char *name, u32 *out) {
    const char *value;
    Device *device = handle;
    Code code = device_field(function, handle, name, &value);
    if (!code) *out = strtoul(value, NULL, 0);
    if (code != NOT_SUPPORTED) return code;
    *out = device->instance < 0 ? device->gpu : device->instance;
    return OK;
}
EXPORT Code nvmlDeviceGetIndex(void *h, u32 *out) { return own_number(__func__, h, "index", out); }
EXPORT Code nvmlDeviceGetMinorNumber(void *h, u32 *out) {
    return own_number(__func__, h, "minor", out);
}

/* ---- fields of a device */

#define TEXT(FUNCTION, KEY) \
    EXPORT Code FUNCTION(void *handle, char *out, u32 size) { \
        const char *value = NULL; \
        Code code = device_field(__func__, handle, KEY, &value); \
        return give_text(code, value, out, size); \
    }
#define NUMBER(FUNCTION, TYPE, KEY) \
    EXPORT Code FUNCTION(void *handle, TYPE *out) { \
        const char *value; \
        Code code = device_field(__func__, handle, KEY, &value); \
        if (!code) *out = strtoull(value, NULL, 0); \
        return code; \
    }
#define PAIR(FUNCTION, KEY) \
    EXPORT Code FUNCTION(void *handle, u32 *first, u32 *second) { \
        const char *value; \
        Code code = device_field(__func__, handle, KEY, &value); \
        if (!code) sscanf(value, "%u,%u", first, second); \
        return code; \
    }
#define BY_KIND(FUNCTION, PREFIX) \
    EXPORT Code FUNCTION(void *handle, int kind, u32 *out) { \
        char key[24]; \
        const char *value; \
        snprintf(key, sizeof key, PREFIX "%d", kind); \
        Code code = device_field(__func__, handle, key, &value); \
        if (!code) *out = strtoul(value, NULL, 0); \
        return code; \
    }
TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
NUMBER(nvmlDeviceGetBrand, u32, "brand")
NUMBER(nvmlDeviceGetArchitecture, u32, "arch")
NUMBER(nvmlDeviceGetFanSpeed, u32, "fan")
NUMBER(nvmlDeviceGetPowerUsage, u32, "power")
NUMBER(nvmlDeviceGetPowerManagementLimit, u32, "powerlimit")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, u32, "powerlimit")
NUMBER(nvmlDeviceGetPerformanceState, u32, "pstate")
NUMBER(nvmlDeviceGetPersistenceMode, u32, "persist")
NUMBER(nvmlDeviceGetComputeMode, u32, "computemode")
NUMBER(nvmlDeviceGetDisplayActive, u32, "display")
NUMBER(nvmlDeviceGetDisplayMode, u32, "display")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, u32, "pciegen")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, u32, "pciewidth")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, u32, "pciegenmax")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, u32, "pciewidthmax")
NUMBER(nvmlDeviceGetNumGpuCores, u32, "cores")
NUMBER(nvmlDeviceGetMemoryBusWidth, u32, "buswidth")
NUMBER(nvmlDeviceGetTotalEnergyConsumption, u64, "energy")
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, "throttle")
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, u64, "throttle")
NUMBER(nvmlDeviceGetMaxMigDeviceCount, u32, "maxmig")
NUMBER(nvmlDeviceGetGpuInstanceId, u32, "gi")
NUMBER(nvmlDeviceGetComputeInstanceId, u32, "ci")
PAIR(nvmlDeviceGetCudaComputeCapability, "cc")
PAIR(nvmlDeviceGetEccMode, "ecc")
PAIR(nvmlDeviceGetMigMode, "mig")
PAIR(nvmlDeviceGetEncoderUtilization, "enc")
PAIR(nvmlDeviceGetDecoderUtilization, "dec")
BY_KIND(nvmlDeviceGetClockInfo, "clk")
BY_KIND(nvmlDeviceGetMaxClockInfo, "maxclk")
BY_KIND(nvmlDeviceGetTemperatureThreshold, "tthr")

EXPORT Code nvmlDeviceGetUtilizationRates(void *handle, u32 *out) {
    const char *value;
    Code code = device_field(__func__, handle, "util", &value);
    if (!code) sscanf(value, "%u,%u", out, out + 1);
    return code;
}
EXPORT Code nvmlDeviceGetTemperature(void *handle, int sensor, u32 *out) {
    const char *value;
    Code code = sensor ? BAD_ARGUMENT : device_field(__func__, handle, "temp", &value);
    if (!code) *out = strtoul(value, NULL, 0);
    return code;
}
EXPORT Code nvmlDeviceGetTemperatureV(void *handle, int *out) {
    return nvmlDeviceGetTemperature(handle, 0, (u32 *)out + 2);
}
EXPORT Code nvmlDeviceGetTotalEccErrors(void *handle, int kind, int counter, u64 *out) {
    char key[24];
    const char *value;
    (void)counter;
    snprintf(key, sizeof key, "eccerr%d", kind);
    Code code = device_field(__func__, handle, key, &value);
    if (!code) *out = strtoull(value, NULL, 0);
    return code;
}

/* ---- MIG instances and the PCI bus */

EXPORT Code nvmlDeviceIsMigDeviceHandle(void *handle, u32 *out) {
    *out = ((Device *)handle)->instance >= 0;
    return OK;
}
EXPORT Code nvmlDeviceGetMigDeviceHandleByIndex(void *handle, u32 index, void **out) {
    char key[24];
    const char *value;
    if (index >= MOST_INSTANCES) return BAD_ARGUMENT;
    snprintf(key, sizeof key, "m%u.uuid", index);
    Code code = device_field(__func__, handle, key, &value);
    if (code) return code == NOT_SUPPORTED ? NOT_FOUND : code;
    *out = &devices[((Device *)handle)->gpu][index + 1];
    return OK;
}
EXPORT Code nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *handle, void **out) {
    *out = &devices[((Device *)handle)->gpu][0];
    return OK;
}

typedef struct {
    char legacy[16];
    u32 domain, bus, device, id, subsystem;
    char bus_id[32];
} PciInfo;

EXPORT Code nvmlDeviceGetPciInfo_v3(void *handle, PciInfo *out) {
    const char *value;
    Code code = device_field(__func__, handle, "bus", &value);
    if (code) return code;
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "%s", value);
    sscanf(value, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", out->domain & 0xffff,
             out->bus & 0xff, out->device & 0xff);
    out->id = 0x20b010de; /* an A100 of NVIDIA */
    return OK;
}
EXPORT Code nvmlDeviceGetPciInfo_v2(void *handle, PciInfo *out) {
    return nvmlDeviceGetPciInfo_v3(handle, out);
}
EXPORT Code nvmlDeviceGetPciInfo(void *handle, PciInfo *out) {
    return nvmlDeviceGetPciInfo_v3(handle, out);
}
