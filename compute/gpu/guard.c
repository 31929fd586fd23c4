#include "shim.h"

// The library panics when a call that can't report an error meets a lost device: a submit, a poll, a release. A panic unwinds the stack
// and, finding nobody who would stop it, ends the process. Here it is stopped: a frame with a personality routine of its own claims
// every exception that reaches it, and leaves by longjmp once the frames below have been cleaned up, locks of the library included.
//
// The library then takes this thread for panicking for the rest of its life: on it, releasing a handle frees nothing, and a second
// panic ends the process. So another thread releases what is left (device.go).

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <setjmp.h>
#include <unwind.h>

static __thread jmp_buf *guarded;

// pl_personality is called for pl_guard's frame: first to ask whether it catches, then when it is its turn.
__attribute__((used)) _Unwind_Reason_Code pl_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
	struct _Unwind_Exception *exception, struct _Unwind_Context *context) {
	(void)version, (void)class, (void)exception, (void)context;
	if (actions & _UA_SEARCH_PHASE) {
		return guarded ? _URC_HANDLER_FOUND : _URC_CONTINUE_UNWIND;
	}
	if (actions & _UA_HANDLER_FRAME) {
		longjmp(*guarded, 1);
	}
	return _URC_CONTINUE_UNWIND;
}

__attribute__((noinline)) int pl_guard(void (*call)(void *), void *arg) {
	jmp_buf here, *before = guarded;
	int caught = 1;

	__asm__ volatile(".cfi_personality 0x1b, pl_personality"); // relative to the place, four bytes
	guarded = &here;
	if (setjmp(here) == 0) {
		call(arg);
		caught = 0;
	}
	guarded = before;
	return caught;
}

#else

// Not tried elsewhere: a panic ends the process.
int pl_guard(void (*call)(void *), void *arg) {
	call(arg);
	return 0;
}

#endif
