/* A fake libcuda.so.1 that answers as the scenario file of the fake NVML says.
 *
 *   cuinit=!N      cuInit returns the CUDA error N; hang: it never returns; crash: it ends the process
 *   cudriver=N     the version of CUDA that the driver serves, 13000 for 13.0
 *   cucount=N      the number of devices, else the count that NVML has
 */
#include "../nvml/scenario.h"

#include <signal.h>

EXPORT int cuDriverGetVersion(int *version) {
    const char *value = lookup("cudriver");
    *version = value ? atoi(value) : 13000;
    return 0;
}

EXPORT int cuInit(unsigned int flags) {
    const char *value = lookup("cuinit");
    (void)flags;
    if (value && !strcmp(value, "hang")) pause();
    if (value && !strcmp(value, "crash")) raise(SIGSEGV);
    return error_in("cuinit");
}

EXPORT int cuDeviceGetCount(int *count) {
    const char *value = lookup("cucount");
    if (!value) value = lookup("count");
    *count = value ? atoi(value) : 0;
    return 0;
}
