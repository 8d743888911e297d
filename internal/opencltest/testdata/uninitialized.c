// Corrections of Oclgrind's search for reads of memory that was never written, in its releases 21.10
// and later. They are loaded before Oclgrind's library, so that these functions are called in place
// of its own:
//
//   - A write by the host makes shadow memory of its own size for the whole memory object. Here the
//     shadow has the size of the object, and what is written is marked.
//   - A thread has a pool of shadow values only once it has made a context, and loses it when it
//     releases as many contexts as it has made. Programs in Go change threads, so here each thread
//     that runs a kernel gets a pool, and keeps it.
//
// Memory that the host fills with bytes 0xff counts as never written: that is what scratch memory
// holds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GLOBAL_SPACE = 1, OFFSET_BITS = 32 };

struct buffer {
	size_t size;
};

// Functions of Oclgrind, which is C++: an object is the first argument.
unsigned space_of(const void *memory) __asm__("_ZNK8oclgrind6Memory15getAddressSpaceEv");
const struct buffer *buffer_of(const void *memory, size_t address) __asm__("_ZNK8oclgrind6Memory9getBufferEm");
void *shadow_of(const void *plugin, unsigned space, const void *item, const void *group) __asm__(
	"_ZNK8oclgrind13Uninitialized15getShadowMemoryEjPKNS_8WorkItemEPKNS_9WorkGroupE");
bool covers(const void *shadow, size_t address, size_t size) __asm__("_ZNK8oclgrind12ShadowMemory14isAddressValidEmm");
void allocate(void *shadow, size_t address, size_t size) __asm__("_ZN8oclgrind12ShadowMemory8allocateEmm");
void store(void *shadow, const void *bytes, size_t address, size_t size) __asm__("_ZN8oclgrind12ShadowMemory5storeEPKhmm");
void make_pool(void *context) __asm__("_ZN8oclgrind13ShadowContext16createMemoryPoolEv");
void delete_pool(void *context) __asm__("_ZN8oclgrind13ShadowContext17destroyMemoryPoolEv");

#define HOST_STORE "_ZN8oclgrind13Uninitialized15hostMemoryStoreEPKNS_6MemoryEmmPKh"
#define KERNEL_BEGIN "_ZN8oclgrind13Uninitialized11kernelBeginEPKNS_16KernelInvocationE"
void host_store(void *plugin, const void *memory, size_t address, size_t size, const uint8_t *data) __asm__(HOST_STORE);
void kernel_begin(void *plugin, const void *invocation) __asm__(KERNEL_BEGIN);

// Bits of shadow memory that are set stand for bits that were never written.
static void mark(void *shadow, size_t address, size_t size, bool written) {
	uint8_t *bytes = malloc(size);
	if (!bytes)
		abort();
	memset(bytes, written ? 0 : 0xff, size);
	store(shadow, bytes, address, size);
	free(bytes);
}

void host_store(void *plugin, const void *memory, size_t address, size_t size, const uint8_t *data) {
	if (space_of(memory) != GLOBAL_SPACE || size == 0)
		return;
	void *shadow = shadow_of(plugin, GLOBAL_SPACE, NULL, NULL);
	const size_t base = address >> OFFSET_BITS << OFFSET_BITS, whole = buffer_of(memory, address)->size;
	if (!covers(shadow, base, whole)) {
		allocate(shadow, base, whole);
		mark(shadow, base, whole, false);
	}
	bool written = false;
	for (size_t i = 0; i < size; i++)
		written = written || data[i] != 0xff;
	mark(shadow, address, size, written);
}

void kernel_begin(void *plugin, const void *invocation) {
	static _Thread_local bool has_pool;
	if (!has_pool)
		make_pool(NULL);
	has_pool = true;
	((void (*)(void *, const void *))dlsym(RTLD_NEXT, KERNEL_BEGIN))(plugin, invocation);
}

void delete_pool(void *context) {
	(void)context;
}
