// Binds what the Go runtime and go-nvml call to the oldest versions of glibc's symbols, so that a helper built with a new
// glibc runs with an old one. See docs/adr/0007-gpu-helper.md.
#if defined(__x86_64__) && !defined(__ASSEMBLER__)
#define V(s) __asm__(".symver " #s "," #s "@GLIBC_2.2.5")
V(pthread_create);
V(pthread_detach);
V(pthread_attr_getstacksize);
V(pthread_attr_setdetachstate);
V(pthread_attr_getstack);
V(pthread_getattr_np);
V(pthread_key_create);
V(pthread_setspecific);
V(pthread_sigmask);
V(pthread_attr_setstacksize);
V(pthread_join);
V(pthread_rwlock_wrlock);
V(pthread_once);
V(pthread_mutex_trylock);
V(pthread_kill);
V(pthread_attr_init);
V(dlopen);
V(dlsym);
V(dlclose);
V(dlerror);
__asm__(".symver pthread_cond_wait,pthread_cond_wait@GLIBC_2.3.2");
#endif
