package supervisor

// stubMachine is EM_X86_64.
const stubMachine = 62

// stubCode is the stub.
var stubCode = []byte{
	0xb8, 72, 0, 0, 0, // mov eax, SYS_fcntl
	0xbf, stubFD, 0, 0, 0, // mov edi, stubFD
	0xbe, 2, 0, 0, 0, // mov esi, F_SETFD
	0xba, 1, 0, 0, 0, // mov edx, FD_CLOEXEC
	0x0f, 0x05, // syscall
	0x48, 0x8b, 0x04, 0x24, // mov rax, [rsp]: the number of arguments
	0x48, 0x8b, 0x7c, 0x24, 0x08, // mov rdi, [rsp+8]: the first one is the path
	0x48, 0x8d, 0x74, 0x24, 0x10, // lea rsi, [rsp+16]: the program's arguments
	0x48, 0x8d, 0x54, 0xc4, 0x10, // lea rdx, [rsp+rax*8+16]: the environment
	0xb8, 59, 0, 0, 0, // mov eax, SYS_execve
	0x0f, 0x05, // syscall
	0x50,             // push rax
	0xb8, 1, 0, 0, 0, // mov eax, SYS_write
	0xbf, stubFD, 0, 0, 0, // mov edi, stubFD
	0x48, 0x89, 0xe6, // mov rsi, rsp
	0xba, 8, 0, 0, 0, // mov edx, 8
	0x0f, 0x05, // syscall
	0xb8, 231, 0, 0, 0, // mov eax, SYS_exit_group
	0xbf, 127, 0, 0, 0, // mov edi, 127
	0x0f, 0x05, // syscall
}
