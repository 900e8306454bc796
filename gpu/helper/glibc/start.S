// Where the program starts: glibc 2.34 and later link the start of theirs to a new __libc_start_main; this one calls the
// old one, which every glibc has. It calls main with the arguments that the kernel left on the stack (System V ABI, 3.4.1).
#ifdef __x86_64__
	.text
	.globl _start
	.type _start,@function
_start:
	xorl %ebp,%ebp
	movq %rdx,%r9
	popq %rsi
	movq %rsp,%rdx
	andq $-16,%rsp
	pushq %rax
	pushq %rsp
	xorl %r8d,%r8d
	xorl %ecx,%ecx
	movq main@GOTPCREL(%rip),%rdi
	call *old_libc_start@GOTPCREL(%rip)
	hlt
	.symver old_libc_start,__libc_start_main@GLIBC_2.2.5
	.section .note.GNU-stack,"",@progbits
#endif
