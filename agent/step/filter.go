package step

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Of the kernel's linux/bpf.h.
const (
	charDevice = 2 // BPF_DEVCG_DEV_CHAR
	allowMulti = 2 // BPF_F_ALLOW_MULTI
)

// denial is a program that lets a group open every device but these. Its context is three words: the access with the
// kind of device in the low half, major, and minor (struct bpf_cgroup_dev_ctx).
func denial(denied []Device) (*ebpf.Program, error) {
	ins := asm.Instructions{
		asm.LoadMem(asm.R4, asm.R1, 0, asm.Word),
		asm.And.Imm(asm.R4, 0xffff),
		asm.LoadMem(asm.R2, asm.R1, 4, asm.Word),
		asm.LoadMem(asm.R3, asm.R1, 8, asm.Word),
		asm.JNE.Imm(asm.R4, charDevice, "allow"),
	}
	for i, d := range denied {
		next := fmt.Sprintf("not%d", i)
		ins = append(ins, asm.JNE.Imm(asm.R2, int32(d.Major), next), asm.JEq.Imm(asm.R3, int32(d.Minor), "deny"),
			asm.Mov.Imm(asm.R0, 1).WithSymbol(next))
	}
	ins = append(ins, asm.Mov.Imm(asm.R0, 1).WithSymbol("allow"), asm.Return())
	if len(denied) > 0 { // the kernel refuses what can not be reached
		ins = append(ins, asm.Mov.Imm(asm.R0, 0).WithSymbol("deny"), asm.Return())
	}
	return ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.CGroupDevice, Instructions: ins, License: "MIT"})
}

// canFilter reports whether this kernel takes such programs.
func canFilter() bool {
	p, err := denial(nil)
	if err != nil {
		return false
	}
	return p.Close() == nil
}

// filterDevices denies devices to a group of the unified hierarchy and all below it, for as long as it lives, whoever
// does.
func filterDevices(dir string, denied []Device) error {
	p, err := denial(denied)
	if err != nil {
		return fmt.Errorf("load the device filter: %w", err)
	}
	defer p.Close()
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	defer unix.Close(fd)
	if err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: fd, Program: p, Attach: ebpf.AttachCGroupDevice, Flags: allowMulti}); err != nil {
		return fmt.Errorf("attach the device filter to %s: %w", dir, err)
	}
	return nil
}
