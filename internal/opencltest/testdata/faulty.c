// A library of OpenCL that fails calls on demand. It is linked with the library of the machine, which
// has all other functions. What fails is in a file beside this library, with ".fault" after its name:
//
//	function code after times
//
// After this many calls that succeed, calls of the function return the code, so many times. The
// function * is all of those below. The file may be written at any time, once.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int known, code, after, times;
static char function[64];

static void find(void) {
	Dl_info self;
	char name[4096];
	if (!dladdr(&mutex, &self) || snprintf(name, sizeof name, "%s.fault", self.dli_fname) >= (int)sizeof name)
		return;
	FILE *file = fopen(name, "r");
	if (!file)
		return;
	known = fscanf(file, "%63s %d %d %d", function, &code, &after, &times) == 4;
	fclose(file);
}

// fault returns the code that a call is to fail with, 0 for none.
static int fault(const char *called) {
	int result = 0;
	pthread_mutex_lock(&mutex);
	if (!known)
		find();
	if (known && (!strcmp(function, "*") || !strcmp(function, called))) {
		if (after > 0)
			after--;
		else if (times > 0) {
			times--;
			result = code;
		}
	}
	pthread_mutex_unlock(&mutex);
	return result;
}

// All arguments of these functions are integers and pointers. Those that a function does not have
// are passed on and ignored.
typedef uintptr_t word;
typedef word (*nine)(word, word, word, word, word, word, word, word, word);

#define NEXT(name) ((nine)dlsym(RTLD_NEXT, #name))
#define FAILS(name)                                                                                \
	int name(word a, word b, word c, word d, word e, word f, word g, word h, word i) {         \
		int failed = fault(#name);                                                         \
		return failed ? failed : (int)NEXT(name)(a, b, c, d, e, f, g, h, i);               \
	}

FAILS(clEnqueueNDRangeKernel)
FAILS(clEnqueueReadBuffer)
FAILS(clEnqueueWriteBuffer)
FAILS(clEnqueueCopyBuffer)
FAILS(clEnqueueFillBuffer)
FAILS(clEnqueueMarkerWithWaitList)
FAILS(clFlush)
FAILS(clFinish)
FAILS(clWaitForEvents)

void *clCreateBuffer(word context, word flags, word size, word host, int *result) {
	int failed = fault("clCreateBuffer");
	if (failed) {
		*result = failed;
		return NULL;
	}
	return (void *)NEXT(clCreateBuffer)(context, flags, size, host, (word)result, 0, 0, 0, 0);
}

// A build that is to fail gets an option with which no kernel compiles.
int clBuildProgram(word program, word count, word devices, const char *options, word notify, word data) {
	if (fault("clBuildProgram"))
		options = "-D__kernel=nonsense";
	return (int)NEXT(clBuildProgram)(program, count, devices, (word)options, notify, data, 0, 0, 0);
}
