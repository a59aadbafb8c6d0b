/* Stands before the OpenCL loader (LD_PRELOAD) and lets chosen calls fail.
 *
 * Calls are counted from 1. fail_calls(first, last, status) lets the calls with the numbers first to last return
 * `status` without reaching the driver. Releases reach it all the same: a driver frees an object even where it reports
 * an error. Retaining fails only where a single call fails: counting references needs no device, so a driver that has
 * lost its device still does it. live_memory_objects() is the number of buffers and images that were created and not yet
 * released.
 *
 * Every argument of these functions is an integer or an address, so that one generic signature passes them all on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef long word;
typedef word (*call)(word, word, word, word, word, word, word, word, word, word, word, word);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls, first_failing, last_failing, memory_objects;
static int failing_status;
static const char *name_of_failed = "";
static char names[4096]; /* every function that was called, each once, between spaces */

void fail_calls(long first, long last, int status) {
    pthread_mutex_lock(&lock);
    calls = 0, first_failing = first, last_failing = last, failing_status = status, name_of_failed = "";
    pthread_mutex_unlock(&lock);
}

long calls_made(void) { return calls; }
long live_memory_objects(void) { return memory_objects; }
const char *failed_call(void) { return name_of_failed; }
const char *called_functions(void) { return names; }

static int fails(const char *name) {
    char padded[80] = " ";
    pthread_mutex_lock(&lock);
    strcat(strcat(padded, name), " ");
    if (!strstr(names, padded) && strlen(names) + sizeof padded < sizeof names)
        strcat(names, names[0] ? padded + 1 : padded);
    calls++;
    int fails_here = calls >= first_failing && calls <= last_failing;
    if (fails_here && !name_of_failed[0])
        name_of_failed = name;
    pthread_mutex_unlock(&lock);
    return fails_here;
}

static void count_memory_objects(int change) {
    pthread_mutex_lock(&lock);
    memory_objects += change;
    pthread_mutex_unlock(&lock);
}

/* Python loads the real functions where RTLD_NEXT does not look, so the loader's library is found by its name.
 * It is opened after the search: a callback that opens libraries waits for other threads that do. */
static int is_loader(struct dl_phdr_info *info, size_t size, void *found) {
    (void)size;
    if (strstr(info->dlpi_name, "libOpenCL"))
        *(const char **)found = info->dlpi_name;
    return *(const char **)found != NULL;
}

static call real_function(const char *name) {
    const char *path = NULL;
    dl_iterate_phdr(is_loader, &path);
    void *loader = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    call found = loader ? (call)dlsym(loader, name) : NULL;
    if (!found)
        abort();
    return found;
}

#define WORDS word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l
#define PASSED a, b, c, d, e, f, g, h, i, j, k, l
#define REAL(name) ({ static call real; if (!real) real = real_function(#name); real(PASSED); })

/* A function that returns its status. */
#define STATUS(name) word name(WORDS) { return fails(#name) ? failing_status : REAL(name); }
#define RELEASE(name, change) word name(WORDS) { \
    int refused = fails(#name); \
    count_memory_objects(change); \
    word status = REAL(name); \
    return refused ? failing_status : status; }
#define RETAIN(name, change) word name(WORDS) { \
    if (fails(#name) && first_failing == last_failing) return failing_status; \
    count_memory_objects(change); \
    return REAL(name); }
/* A function that returns an object, and its status through the argument `where`. */
#define OBJECT(name, where, change) word name(WORDS) { \
    if (fails(#name)) { if (where) *(int *)(where) = failing_status; return 0; } \
    word made = REAL(name); \
    if (made) count_memory_objects(change); \
    return made; }

STATUS(clGetPlatformIDs) STATUS(clGetPlatformInfo) STATUS(clGetDeviceIDs) STATUS(clGetDeviceInfo)
STATUS(clGetContextInfo) STATUS(clGetCommandQueueInfo) STATUS(clGetMemObjectInfo) STATUS(clGetImageInfo)
STATUS(clGetSupportedImageFormats) STATUS(clGetProgramInfo) STATUS(clGetProgramBuildInfo) STATUS(clGetKernelInfo)
STATUS(clGetKernelArgInfo) STATUS(clGetKernelWorkGroupInfo) STATUS(clGetEventInfo) STATUS(clGetEventProfilingInfo)
STATUS(clBuildProgram) STATUS(clSetKernelArg) STATUS(clWaitForEvents) STATUS(clFlush) STATUS(clFinish)
STATUS(clEnqueueReadBuffer) STATUS(clEnqueueWriteBuffer) STATUS(clEnqueueCopyBuffer) STATUS(clEnqueueFillBuffer)
STATUS(clEnqueueUnmapMemObject) STATUS(clEnqueueNDRangeKernel) STATUS(clEnqueueMarkerWithWaitList)
RETAIN(clRetainContext, 0) RETAIN(clRetainCommandQueue, 0) RETAIN(clRetainProgram, 0) RETAIN(clRetainKernel, 0)
RETAIN(clRetainEvent, 0) RETAIN(clRetainDevice, 0)
RELEASE(clReleaseContext, 0) RELEASE(clReleaseCommandQueue, 0) RELEASE(clReleaseProgram, 0)
RELEASE(clReleaseKernel, 0) RELEASE(clReleaseEvent, 0) RELEASE(clReleaseDevice, 0)
RETAIN(clRetainMemObject, 1) RELEASE(clReleaseMemObject, -1)
OBJECT(clCreateContext, f, 0) OBJECT(clCreateCommandQueue, d, 0) OBJECT(clCreateCommandQueueWithProperties, d, 0)
OBJECT(clCreateBuffer, e, 1) OBJECT(clCreateImage, f, 1) OBJECT(clCreateProgramWithSource, e, 0)
OBJECT(clCreateProgramWithBinary, g, 0) OBJECT(clCreateKernel, c, 0) OBJECT(clEnqueueMapBuffer, j, 0)
